import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Api } from "../../src/api.js";
import { Live } from "../../src/live.js";
import { SESSION, serve } from "./fakes.js";

const MINUTE = 60_000;

/** A web socket that nobody ends but the page: the other side has gone without a word. */
class Socket {
  static all: Socket[] = [];
  isClosed = false;
  onmessage: ((event: { data: string }) => void) | null = null;
  constructor() {
    Socket.all.push(this);
  }
  close(): void {
    this.isClosed = true;
  }
}

const page = new EventTarget();
let running: AbortController;
let ended: Promise<void>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
  Socket.all = [];
  vi.stubGlobal("WebSocket", Socket);
  vi.stubGlobal("document", page);
  vi.stubGlobal("addEventListener", () => undefined);
  vi.stubGlobal("removeEventListener", () => undefined);
  running = new AbortController();
});
afterEach(async () => {
  running.abort();
  await ended;
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A connection that was greeted. */
async function connected(): Promise<Socket> {
  serve(() => ({ status: 200, body: { ticket: "one" } }));
  const live = new Live(new Api(SESSION), { message: () => undefined, state: () => undefined, poll: async () => true });
  ended = live.run(running.signal);
  await vi.waitFor(() => expect(Socket.all.length).toBe(1));
  const [socket] = Socket.all;
  socket!.onmessage!({ data: JSON.stringify({ type: "hello", cursor: "c", unread: 0, unseen: 0 }) });
  return socket!;
}

test("a connection through which the machine has slept is made anew", async () => {
  const socket = await connected();
  vi.setSystemTime(Date.now() + 10 * MINUTE);
  vi.advanceTimersByTime(MINUTE);
  expect(socket.isClosed).toBe(true);
  await vi.advanceTimersByTimeAsync(2000);
  expect(Socket.all.length).toBe(2);
});

test("a page that comes back after a sleep looks at its connection at once, and leaves a good one alone", async () => {
  const socket = await connected();
  vi.setSystemTime(Date.now() + MINUTE);
  page.dispatchEvent(new Event("visibilitychange"));
  expect(socket.isClosed).toBe(false);
  vi.setSystemTime(Date.now() + 10 * MINUTE);
  page.dispatchEvent(new Event("visibilitychange"));
  expect(socket.isClosed).toBe(true);
});

test("a connection that is older than any that Waypost holds is made anew", async () => {
  const socket = await connected();
  vi.advanceTimersByTime(60 * MINUTE);
  expect(socket.isClosed).toBe(false);
  vi.advanceTimersByTime(2 * MINUTE);
  expect(socket.isClosed).toBe(true);
  await vi.advanceTimersByTimeAsync(2000);
  expect(Socket.all.length).toBe(2);
  vi.advanceTimersByTime(30 * MINUTE);
  expect(Socket.all[1]!.isClosed).toBe(false);
});
