import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Api } from "../../src/api.js";
import { Feed } from "../../src/feed.js";
import type { Entry } from "../../src/messages.js";
import { MemoryStorage } from "../../src/storage.js";
import { type Call, entry, SESSION, serve } from "./fakes.js";

let storage: MemoryStorage;

beforeEach(() => {
  storage = new MemoryStorage();
});
afterEach(() => vi.unstubAllGlobals());

/** A server whose feed has so many entries, newest first, of which none is read. */
function feedOf(count: number, marks: (call: Call) => any = () => ({ status: 200, body: { unread: 0, unseen: 0 } })): Call[] {
  const all = Array.from({ length: count }, (_, n) => entry(count - n));
  return serve((call) => {
    if (call.method === "POST") return marks(call);
    const from = Number(new URLSearchParams(call.path.split("?")[1]).get("cursor") ?? 0);
    const items = all.slice(from, from + 20);
    const next = from + 20 < count ? String(from + 20) : null;
    return { status: 200, body: { items, next, unread: count, unseen: count } };
  });
}

async function started(count: number, marks?: (call: Call) => any): Promise<{ feed: Feed; calls: Call[]; came: string[]; words: string[] }> {
  const calls = feedOf(count, marks);
  const feed = new Feed(new Api(SESSION), storage);
  const came: string[] = [];
  const words: string[] = [];
  feed.on("entry", (each) => came.push(each.id));
  feed.on("problem", (problem) => words.push(problem.message));
  await feed.start();
  return { feed, calls, came, words };
}

const ids = (items: readonly Entry[]) => items.map((each) => each.id);

test("pages are loaded one at a time, and not past the end", async () => {
  const { feed, calls } = await started(45);
  await Promise.all([feed.more(), feed.more(), feed.more()]);
  expect(feed.items.length).toBe(40);
  await feed.more();
  expect(feed.hasMore).toBe(false);
  await Promise.all([feed.more(), feed.more()]);
  expect(calls.length).toBe(3);
  expect(new Set(ids(feed.items)).size).toBe(45);
});

test("a list of one tag shows nothing else, counts everything, and marks what it shows", async () => {
  const orders = entry(1, { tags: ["orders"] });
  const calls = serve(({ method }) => ({ status: 200, body: method === "GET" ? { items: [orders], next: null, unread: 1, unseen: 1 } : { unread: 1, unseen: 1 } }));
  const feed = new Feed(new Api(SESSION), storage, "inbox", () => undefined, { tag: "orders" });
  const came: string[] = [];
  feed.on("entry", (each) => came.push(each.id));
  await feed.start();
  const asked = new URLSearchParams(calls[0]!.path.split("?")[1]);
  expect([asked.get("tag"), asked.get("type")]).toEqual(["orders", null]);
  feed.take({ type: "entry", cursor: "2", entry: entry(2), unread: 2, unseen: 2 });
  feed.take({ type: "entry", cursor: "3", entry: entry(3, { tags: ["news", "orders"] }), unread: 3, unseen: 3 });
  expect([ids(feed.items), feed.counts.unread, came]).toEqual([["id-0003", "id-0001"], 3, ["id-0003"]]);
  await feed.markAll("read");
  expect(calls.at(-1)!.body).toEqual({ mark: "read", ids: ["id-0003", "id-0001"] });
});

test("another list of the session is loaded after what is being marked", async () => {
  let answer: () => void;
  let isRead = false;
  const calls = serve(async ({ method }) => {
    if (method === "GET") return { status: 200, body: { items: isRead ? [entry(1)] : [entry(2), entry(1)], next: null, unread: 2, unseen: 2 } };
    await new Promise<void>((done) => (answer = done));
    isRead = true;
    return { status: 200, body: { unread: 1, unseen: 1 } };
  });
  const api = new Api(SESSION);
  const feed = new Feed(api, storage);
  await feed.start();
  void feed.mark("read", [feed.items[0]!.id]);
  const unread = new Feed(api, storage, "unread");
  const loading = unread.start();
  await vi.waitFor(() => expect(calls.some((each) => each.method === "POST")).toBe(true));
  answer!();
  await loading;
  expect(ids(unread.items)).toEqual([entry(1).id]);
});

test("what comes twice is told once, for the last 200 ids", async () => {
  const { feed, came } = await started(0);
  const say = (n: number) => feed.take({ type: "entry", cursor: "c", entry: entry(n), unread: 1, unseen: 1 });
  for (let n = 1; n <= 200; n++) say(n);
  for (let n = 1; n <= 200; n++) say(n);
  expect(came.length).toBe(200);
  say(201); // the first is forgotten
  say(1);
  expect(came.length).toBe(202);
  expect(feed.items.length).toBe(201);
});

test("a mark shows at once, and the server's counts hold", async () => {
  let answer = (_: unknown): void => undefined;
  const { feed, calls } = await started(3, () => new Promise((resolve) => (answer = resolve)));
  const marking = feed.mark("read", ["id-0002"]);
  expect(feed.items[1]!.read_at).not.toBeNull();
  expect(feed.counts).toEqual({ unread: 2, unseen: 2 });
  await vi.waitFor(() => expect(calls.at(-1)!.body).toEqual({ mark: "read", ids: ["id-0002"] }));
  answer({ status: 200, body: { unread: 7, unseen: 7 } });
  expect(await marking).toBe(true);
  expect(feed.counts).toEqual({ unread: 7, unseen: 7 });
});

test("what the server refuses is put back, with words that a person understands", async () => {
  const { feed, words } = await started(3, () => ({ status: 500, body: { code: "internal", detail: "Traceback (most recent" } }));
  const before = feed.items;
  const deleting = feed.mark("deleted", ["id-0002"]);
  expect(ids(feed.items)).toEqual(["id-0003", "id-0001"]);
  expect(await deleting).toBe(false);
  expect(feed.items).toEqual(before);
  expect(feed.counts).toEqual({ unread: 3, unseen: 3 });
  expect(words).toEqual(["The service is busy. Try again in a moment."]);
});

test("what came while a refused mark was on its way stays", async () => {
  let refuse = (): void => undefined;
  const { feed } = await started(2, () => new Promise((resolve) => (refuse = () => resolve({ status: 503 }))));
  const marking = feed.markAll("read");
  feed.take({ type: "entry", cursor: "c", entry: entry(9), unread: 3, unseen: 3 });
  await vi.waitFor(() => refuse());
  await new Promise((resolve) => setTimeout(resolve));
  refuse();
  expect(await marking).toBe(false);
  expect(feed.counts).toEqual({ unread: 3, unseen: 3 });
  expect(feed.items.map((each) => each.read_at)).toEqual([null, null, null]);
});

test("a second mark that works is not undone by a first that does not", async () => {
  const answers = [{ status: 503 }, { status: 200, body: { unread: 0, unseen: 0 } }];
  const { feed } = await started(1, () => answers.shift());
  await Promise.all([feed.mark("read", ["id-0001"]), feed.mark("deleted", ["id-0001"])]);
  expect(feed.items).toEqual([]);
  expect(feed.counts).toEqual({ unread: 0, unseen: 0 });
});

test("what is marked on another device is marked here", async () => {
  const { feed } = await started(3);
  feed.take({ type: "marked", mark: "read", ids: ["id-0003"], unread: 2, unseen: 2 });
  feed.take({ type: "marked", mark: "deleted", ids: ["id-0001"], unread: 1, unseen: 1 });
  expect(feed.items.map((each) => [each.id, each.read_at !== null])).toEqual([
    ["id-0003", true],
    ["id-0002", false],
  ]);
  expect(feed.counts.unread).toBe(1);
});

test("a greeting with other counts has the list loaded anew, one with the same does not", async () => {
  const { feed, calls } = await started(3);
  feed.take({ type: "hello", cursor: "c", unread: 3, unseen: 3 });
  await new Promise((resolve) => setTimeout(resolve));
  expect(calls.length).toBe(1);
  feed.take({ type: "hello", cursor: "c", unread: 2, unseen: 3 });
  await vi.waitFor(() => expect(calls.length).toBe(2));
});

test("what was there the last time is shown before anything is loaded, and stays where nothing can be", async () => {
  await started(3);
  await vi.waitFor(async () => expect(await storage.get("feed https://push.example ann")).toBeDefined());
  serve(() => "cut off");
  const feed = new Feed(new Api(SESSION), storage);
  const words: string[] = [];
  feed.on("problem", (problem) => words.push(problem.message));
  expect(await feed.start()).toBe(false);
  expect(ids(feed.items)).toEqual(["id-0003", "id-0002", "id-0001"]);
  expect(feed.counts.unread).toBe(3);
  expect(words).toEqual(["You seem to be offline. Check your connection and try again."]);
});

test("a polled page tells what is new in it, once", async () => {
  const { feed, came } = await started(2);
  expect(came).toEqual([]);
  feedOf(4);
  await feed.refresh();
  await feed.refresh();
  expect(came).toEqual(["id-0003", "id-0004"]);
});

test("a user's feed is forgotten at logout, and is there again after the next login", async () => {
  const { feed, came } = await started(3);
  await feed.forget();
  expect(await storage.get("feed https://push.example ann")).toBeUndefined();
  expect([feed.items, feed.counts]).toEqual([[], { unread: 0, unseen: 0 }]);
  expect(await feed.start()).toBe(true);
  expect(feed.items.length).toBe(3);
  expect(came).toEqual([]);
  await vi.waitFor(async () => expect(await storage.get("feed https://push.example ann")).toBeDefined());
});

test("what is on its way at logout brings nothing back", async () => {
  let refuse = (): void => undefined;
  const { feed, calls, words } = await started(3, () => new Promise((resolve) => (refuse = () => resolve({ status: 503 }))));
  const marking = feed.mark("deleted", ["id-0002"]);
  await vi.waitFor(() => expect(calls.at(-1)!.method).toBe("POST"));
  await feed.forget();
  refuse();
  expect(await marking).toBe(false);
  expect([feed.items, words]).toEqual([[], []]);
});

test("older entries can be loaded after a return, also where a newer one has come meanwhile", async () => {
  await started(45);
  await vi.waitFor(async () => expect(await storage.get("feed https://push.example ann")).toBeDefined());
  const { feed } = await started(46);
  expect(feed.items.length).toBe(20);
  while (feed.hasMore) await feed.more();
  expect(new Set(ids(feed.items)).size).toBe(46);
});

test("the list is loaded anew where marking all has left something unread, and nothing is asked twice", async () => {
  const { feed, calls } = await started(3, () => ({ status: 200, body: { unread: 1, unseen: 1 } }));
  await feed.markAll("seen");
  await new Promise((resolve) => setTimeout(resolve));
  await feed.markAll("read");
  await vi.waitFor(() => expect(calls.at(-1)!.method).toBe("GET"));
  await vi.waitFor(() => expect(feed.isLoading).toBe(false));
  expect(calls.map((each) => each.method)).toEqual(["GET", "POST", "POST", "GET"]);
  expect(feed.items.map((each) => each.read_at)).toEqual([null, null, null]); // as the server says
});

test("a deletion can be taken back", async () => {
  const { feed, calls } = await started(3, () => ({ status: 200, body: { unread: 3, unseen: 3 } }));
  const gone = feed.items[1]!;
  await feed.mark("deleted", [gone.id]);
  expect(await feed.restore(gone)).toBe(true);
  expect(ids(feed.items)).toEqual(["id-0003", "id-0002", "id-0001"]);
  expect(calls.at(-1)!.body).toEqual({ mark: "restored", ids: [gone.id] });
});

test("a token that is refused is asked for anew, once", async () => {
  const given: boolean[] = [];
  const calls = serve(({ authorization }) => ({ status: authorization === "Bearer new" ? 200 : 401 }));
  const api = new Api({ ...SESSION, token: (isRefused) => (given.push(isRefused), isRefused ? "new" : "old") });
  await api.call("GET", "/x");
  await api.call("GET", "/x");
  expect(given).toEqual([false, true]);
  expect(calls.map((each) => each.authorization)).toEqual(["Bearer old", "Bearer new", "Bearer new"]);
});
