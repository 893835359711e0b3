import "fake-indexeddb/auto";
import { afterEach, expect, test, vi } from "vitest";
import { Problem, type ProblemKind, problemOf, refusal } from "../../src/problem.js";
import { keepReceipt, sendReceipts } from "../../src/receipts.js";
import { BrowserStorage } from "../../src/storage.js";
import { pushedOf } from "../../src/pushed.js";
import { REGISTERED } from "../../src/token.js";
import { backoffMs } from "../../src/waiting.js";
import { textsOf } from "../../src/inbox/texts.js";
import { Api } from "../../src/api.js";
import { SESSION, serve } from "./fakes.js";

afterEach(() => vi.unstubAllGlobals());

const data = (said: unknown) => ({ json: () => said, text: () => String(said) }) as never;

test("a push is read as it was sent", () => {
  const said = { waypost_id: "one", kind: "visible", title: "T", tag: "orders", data: { order: 7 } };
  expect(pushedOf(data(said))).toEqual(said);
});

test("a declarative push is read as what the browser would have shown", () => {
  const own = { waypost_id: "one", kind: "visible", subtitle: "S", data: { order: 7 } };
  const notification = { title: "T", body: "B", navigate: "https://site.example/7", data: own };
  const said = { web_push: 8030, waypost_id: "one", app_badge: 2, notification };
  expect(pushedOf(data(said))).toEqual({
    waypost_id: "one",
    kind: "visible",
    title: "T",
    subtitle: "S",
    body: "B",
    link: "https://site.example/7",
    badge: 2,
    data: { order: 7 },
  });
});

test("a push that is no JSON is shown as text, and an empty one shows nothing", () => {
  const text = { json: () => JSON.parse("{"), text: () => "{" } as never;
  expect(pushedOf(text)).toEqual({ title: "{" });
  expect(pushedOf(null)).toEqual({});
});

test("each problem has words in each language, and none is what the server said", async () => {
  const statuses: [number, ProblemKind][] = [[400, "failed"], [401, "signed-out"], [403, "not-allowed"], [404, "gone"], [429, "busy"], [503, "busy"]];
  for (const [status, kind] of statuses) {
    const raw = "sqlite3.OperationalError: database is locked";
    const problem = await refusal(new Response(JSON.stringify({ code: "storage_busy", detail: raw }), { status }));
    expect(problem.kind).toBe(kind);
    expect(problem.code).toBe("storage_busy");
    expect(problem.message).not.toContain("sqlite");
    const words = ["en", "de-CH", "fr", "es", "ar"].map((lang) => textsOf(lang)[kind]);
    expect(new Set(words).size).toBe(5);
    expect(words[0]).toBe(problem.message);
  }
  expect(problemOf(new TypeError("x is undefined")).message).toBe(new Problem("failed").message);
});

test("every language has every text", () => {
  const english = Object.keys(textsOf("en")).sort();
  for (const lang of ["de", "fr", "es", "ar"]) {
    const texts = textsOf(lang);
    expect(Object.keys(texts).sort()).toEqual(english);
    expect(texts.unreadCount).toContain("{n}");
  }
  expect(textsOf("xx")).toBe(textsOf("en"));
});

test("waits double up to half a minute, and differ from browser to browser", () => {
  for (const [failures, most] of [[1, 1000], [2, 2000], [3, 4000], [9, 30_000]] as const) {
    const waits = Array.from({ length: 200 }, () => backoffMs(failures));
    expect(Math.max(...waits)).toBeLessThanOrEqual(most);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(most / 2);
    expect(new Set(waits).size).toBeGreaterThan(100);
  }
});

test("receipts that the worker kept are sent with the token of the page, and only once", async () => {
  const storage = new BrowserStorage();
  const calls = serve(() => ({ status: 200, body: { results: [{ status: "delivered" }, { status: null }] } }));
  await storage.set(REGISTERED, { id: "device-1", token: "t" });
  await keepReceipt(storage, { event: "displayed", notification_id: "one" });
  await keepReceipt(storage, { event: "opened", notification_id: "two", token: "signed" });
  await sendReceipts(new Api(SESSION), storage);
  await sendReceipts(new Api(SESSION), storage);
  expect(calls.map((each) => each.body)).toEqual([
    {
      receipts: [
        { event: "displayed", notification_id: "one", device_id: "device-1" },
        { event: "opened", token: "signed" },
      ],
    },
  ]);
});

test("receipts wait on while the server takes none", async () => {
  const storage = new BrowserStorage();
  await storage.set(REGISTERED, { id: "device-1", token: "t" });
  await keepReceipt(storage, { event: "displayed", notification_id: "one" });
  serve(() => ({ status: 503 }));
  await sendReceipts(new Api(SESSION), storage);
  serve(() => ({ status: 200, body: { results: [{ status: "pending" }] } }));
  await sendReceipts(new Api(SESSION), storage);
  const calls = serve(() => ({ status: 200, body: { results: [{ status: "delivered" }] } }));
  await sendReceipts(new Api(SESSION), storage);
  await sendReceipts(new Api(SESSION), storage);
  expect(calls.length).toBe(1);
});

test("a receipt that is kept while others are sent is sent next", async () => {
  const storage = new BrowserStorage();
  await storage.set(REGISTERED, { id: "device-1", token: "t" });
  await keepReceipt(storage, { event: "displayed", notification_id: "one" });
  serve(async () => {
    await keepReceipt(storage, { event: "opened", notification_id: "one" });
    return { status: 200, body: { results: [{ status: "delivered" }] } };
  });
  await sendReceipts(new Api(SESSION), storage);
  const calls = serve(() => ({ status: 200, body: { results: [{ status: "opened" }] } }));
  await sendReceipts(new Api(SESSION), storage);
  expect(calls.map((each) => each.body.receipts[0].event)).toEqual(["opened"]);
});
