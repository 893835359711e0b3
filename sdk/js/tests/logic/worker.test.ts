import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RECEIPTS, type WaitingReceipt } from "../../src/receipts.js";
import { MemoryStorage } from "../../src/storage.js";
import { PushWorker, type WorkerOptions } from "../../src/sw.js";
import { type DeviceToken, REGISTERED, WAITING } from "../../src/token.js";

let storage: MemoryStorage;
let said: any[];
let opened: string[];
let shown: string[];
let keys: unknown[];

beforeEach(() => {
  storage = new MemoryStorage();
  [said, opened, shown, keys] = [[], [], ["one", "two"], []];
  const pages = [{ url: "https://site.example/", focus: async () => undefined, postMessage: (message: any) => said.push(message.waypost) }];
  const list = () => shown.map((id) => ({ data: { waypost_id: id }, close: () => (shown = shown.filter((each) => each !== id)) }));
  const subscribe = async ({ applicationServerKey }: PushSubscriptionOptionsInit) => {
    keys.push(applicationServerKey);
    return { toJSON: () => ({ endpoint: "https://push.example/new", keys: {} }) };
  };
  vi.stubGlobal("self", {
    registration: { scope: "https://site.example/", getNotifications: async () => list(), pushManager: { subscribe } },
    location: { href: "https://site.example/worker.js" },
    clients: { matchAll: async () => pages, openWindow: async (url: string) => void opened.push(url) },
  });
  vi.stubGlobal("navigator", { userAgent: "Mozilla/5.0 (X11; Linux x86_64) Chrome/156" });
});
afterEach(() => vi.unstubAllGlobals());

/** Click on a notification with that link; the links that pages were told, and the receipts that wait. */
async function clicked(link: string, options: WorkerOptions = {}): Promise<{ links: unknown[]; events: string[] }> {
  const notification = { data: { waypost_id: "one", link }, close: () => undefined };
  const click = new PushWorker(options, storage).click({ notification, action: "" } as never);
  await click.catch(() => undefined);
  const waiting = (await storage.get<WaitingReceipt[]>(RECEIPTS)) ?? [];
  return { links: said.filter((each) => each.click).map((each) => each.click.link), events: waiting.map((each) => each.event) };
}

test("a link that is no page's address is not handed to a page, and the click is reported all the same", async () => {
  for (const link of ["javascript:alert(1)", "https://", "data:text/html,x"]) {
    said = [];
    await storage.delete(RECEIPTS);
    expect(await clicked(link)).toEqual({ links: [null], events: ["opened"] });
  }
  expect(opened).toEqual([]);
});

test("a link to a page is handed on and opened, also one from where the page is", async () => {
  expect((await clicked("https://shop.example/7")).links).toEqual(["https://shop.example/7"]);
  expect((await clicked("/orders/7")).links.at(-1)).toBe("/orders/7");
  expect(opened).toEqual(["https://shop.example/7", "https://site.example/orders/7"]);
});

test("a click is reported where the app's own way fails", async () => {
  const linkOf = () => {
    throw new Error("no link");
  };
  expect((await clicked(undefined as never, { linkOf })).events).toEqual(["opened"]);
});

test("a subscription that ended without a word of the old one is made anew with the key that was kept", async () => {
  await storage.set(REGISTERED, { id: "device-1", token: "t", key: "BA1Hxzyi" });
  await new PushWorker({}, storage).renew({} as never);
  expect(keys).toEqual(["BA1Hxzyi"]);
  expect((await storage.get<DeviceToken>(WAITING))!.token).toBe("https://push.example/new");
  expect(said).toEqual([{ renewed: true }]);
});

test("a subscription of which no key is known is left to the page", async () => {
  await new PushWorker({}, storage).renew({} as never);
  expect([keys, said]).toEqual([[], [{ renewed: true }]]);
});

test("what is not in the inbox stays on the screen when all of the inbox was read", async () => {
  const data = { json: () => ({ kind: "silent", data: { waypost: { reads: ["one"], badge: 0 } } }) };
  await new PushWorker({}, storage).push({ data } as never);
  expect(shown).toEqual(["two"]);
});
