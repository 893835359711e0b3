/** The live connection: a web socket by ticket that goes on where it was cut, and polls while there is none. */

import type { Api } from "./api.js";
import type { LiveMessage } from "./messages.js";
import { backoffMs, wait } from "./waiting.js";

/** How the page stands: followed live, asked for at intervals, or neither. */
export type LiveState = "connecting" | "live" | "polling" | "offline";

/** What a connection tells. */
export interface LiveHandler {
  /** A message came, in order. */
  message(said: LiveMessage): void;
  state(state: LiveState): void;
  /** Fetch the feed, as nothing tells what is new; whether that worked. */
  poll(): Promise<boolean>;
}

/** Failures in a row after which the feed is asked for at each further try. */
const POLL_AFTER = 2;
/** How often a connection is looked at; a look that comes so late says that the machine slept. */
const LOOK_MS = 30_000;
const SLEPT_MS = 150_000;
/** An age that no connection has: Waypost ends each within the hour, so that one is dead that it has not ended. */
const OLDEST_MS = 3_660_000;

/** Follows a feed from the page or worker that holds the connection. */
export class Live {
  /** The last cursor; whoever takes over goes on from there. */
  cursor: string | undefined;
  #api: Api;
  #handler: LiveHandler;

  constructor(api: Api, handler: LiveHandler) {
    this.#api = api;
    this.#handler = handler;
  }

  /** Follow until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      if (failures < POLL_AFTER) this.#handler.state("connecting");
      const ended = await this.#connection(signal);
      if (signal.aborted) break;
      failures = ended.wasLive ? 0 : failures + 1;
      if (failures >= POLL_AFTER) this.#handler.state((await this.#handler.poll()) ? "polling" : "offline");
      await this.#pause(ended.waitMs ?? backoffMs(failures), signal);
    }
  }

  /** Wait, but not longer than until the browser is online again. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const early = new AbortController();
    const end = () => early.abort();
    globalThis.addEventListener("online", end);
    signal.addEventListener("abort", end);
    await wait(ms, early.signal);
    globalThis.removeEventListener("online", end);
    signal.removeEventListener("abort", end);
  }

  /** Hold one connection until it ends; whether it came about, and how long the server asks to wait. */
  async #connection(signal: AbortSignal): Promise<{ wasLive: boolean; waitMs?: number }> {
    let ticket: string;
    try {
      ticket = (await this.#api.call<{ ticket: string }>("POST", this.#api.path("live-tickets"))).ticket;
    } catch {
      return { wasLive: false };
    }
    if (signal.aborted) return { wasLive: false };
    const since = this.cursor ? `&since=${encodeURIComponent(this.cursor)}` : "";
    const url = `${this.#api.url.replace(/^http/, "ws")}/live?ticket=${encodeURIComponent(ticket)}${since}`;
    return this.#held(new WebSocket(url), signal);
  }

  #held(socket: WebSocket, signal: AbortSignal): Promise<{ wasLive: boolean; waitMs?: number }> {
    return new Promise((resolve) => {
      const ended: { wasLive: boolean; waitMs?: number } = { wasLive: false };
      const done = new AbortController();
      const end = () => {
        done.abort();
        socket.onmessage = null;
        socket.close(); // where nobody answers any more, this takes a while: nothing waits for it
        resolve(ended);
      };
      signal.addEventListener("abort", end, { signal: done.signal });
      globalThis.addEventListener("offline", end, { signal: done.signal });
      lookAfter(end, done.signal);
      socket.onmessage = (event) => {
        const said = JSON.parse(String(event.data)) as LiveMessage;
        if (said.type === "hello") {
          ended.wasLive = true;
          this.#handler.state("live");
        }
        if (said.type === "reconnect") ended.waitMs = Math.random() * said.within_s * 1000;
        if ("cursor" in said) this.cursor = said.cursor;
        this.#handler.message(said);
      };
      socket.onclose = end;
    });
  }
}

/** Call `end` where a connection may be dead with nobody told: it is too old, or the machine has slept. */
function lookAfter(end: () => void, signal: AbortSignal): void {
  const began = Date.now();
  let last = began;
  const look = () => {
    const now = Date.now();
    if (now - last > SLEPT_MS || now - began > OLDEST_MS) end();
    last = now;
  };
  const timer = setInterval(look, LOOK_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  globalThis.document?.addEventListener("visibilitychange", look, { signal });
}
