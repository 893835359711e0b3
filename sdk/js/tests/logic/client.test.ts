import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Waypost } from "../../src/client.js";
import { MemoryStorage } from "../../src/storage.js";
import { type Call, entry, SESSION, serve } from "./fakes.js";

let tabs: Waypost[];
let waits: (() => void)[];
let storage: MemoryStorage;
let shown: string[];

beforeEach(() => {
  [tabs, waits, storage, shown] = [[], [], new MemoryStorage(), []];
  vi.stubGlobal("setTimeout", (end: () => void, ms = 0) => (ms >= 500 ? waits.push(end) : 0));
  vi.stubGlobal("addEventListener", () => undefined);
  vi.stubGlobal("removeEventListener", () => undefined);
  const list = () => shown.map((id) => ({ data: { waypost_id: id }, close: () => (shown = shown.filter((each) => each !== id)) }));
  const serviceWorker = Object.assign(new EventTarget(), { getRegistration: async () => ({ getNotifications: async () => list() }) });
  vi.stubGlobal("navigator", { userAgent: "Chrome/156", serviceWorker, locks: { request } });
  let held: Promise<unknown> = Promise.resolve();
  /** Locks as a browser has them: one at a time. */
  function request(_: string, { signal }: { signal: AbortSignal }, work: () => Promise<void>): Promise<unknown> {
    return (held = held.then(() => (signal.aborted ? undefined : work())));
  }
});
afterEach(() => {
  for (const tab of tabs) tab.stop();
  vi.unstubAllGlobals();
});

/** A tab that is called `name`, as its calls are; all share what the browser keeps. */
async function tab(name: string): Promise<Waypost> {
  const made = new Waypost({ ...SESSION, token: () => name, storage });
  tabs.push(made);
  await made.start();
  return made;
}

/** A server with two entries and no live connections. */
function served(unread = 2): Call[] {
  const page = { items: [entry(2), entry(1)], next: null, unread: 2, unseen: 2 };
  return serve(({ method, path }) => {
    if (path.includes("live-tickets")) return { status: 503 };
    return { status: 200, body: method === "GET" ? page : { unread, unseen: unread } };
  });
}

const loads = (calls: Call[]) =>
  calls.filter(({ method }) => method === "GET").map((each) => `${each.authorization.slice(7)} ${/folder=(\w+)/.exec(each.path)![1]}`);

test("while nothing is told live, every list of every tab is loaded anew", async () => {
  const calls = served();
  const one = await tab("one");
  const two = await tab("two");
  for (const each of [one, two]) await each.view("unread").start();
  calls.length = 0;
  await vi.waitFor(() => expect(waits.length).toBe(1));
  waits[0]!(); // the second failure
  const all = ["one inbox", "one unread", "two inbox", "two unread"];
  await vi.waitFor(() => expect(loads(calls).sort()).toEqual(all));
});

test("a logout ends every tab of the user and empties its lists, and a start begins anew", async () => {
  const calls = served();
  const other = await tab("other"); // which leads
  const own = await tab("own");
  const view = other.view("unread");
  await view.start();
  await own.logout();
  await own.logout(); // which changes nothing
  await vi.waitFor(() => expect([other.feed.items, view.items, own.feed.items]).toEqual([[], [], []]));
  expect(other.feed.counts).toEqual({ unread: 0, unseen: 0 });
  await vi.waitFor(async () => expect(await storage.get("feed https://push.example ann")).toBeUndefined());
  calls.length = 0;
  await own.start();
  expect(own.feed.items.length).toBe(2);
  await vi.waitFor(() => expect(calls.some((each) => each.path.includes("live-tickets"))).toBe(true));
  expect(new Set(calls.map((each) => each.authorization))).toEqual(new Set(["Bearer own"]));
});

test("what was read all at once goes from the screen, what is not in the inbox stays there", async () => {
  served(0);
  const one = await tab("one");
  shown = ["id-0001", "id-0002", "elsewhere"];
  await one.feed.markAll("read");
  await vi.waitFor(() => expect(shown).toEqual(["elsewhere"]));
});
