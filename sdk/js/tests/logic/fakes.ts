/** A server in memory that answers as it is told, since no real one fails on demand at a moment. */

import { vi } from "vitest";
import type { Entry } from "../../src/messages.js";

/** One call that was made. */
export interface Call {
  method: string;
  path: string;
  body: any;
  authorization: string;
}

type Answer = { status: number; body?: unknown } | "cut off";

/** Answers calls with `answer`, and keeps them in `calls`. */
export function serve(answer: (call: Call) => Answer | Promise<Answer>): Call[] {
  const calls: Call[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const { pathname, search } = new URL(url);
    const authorization = (init.headers as Record<string, string>)["authorization"] ?? "";
    const body = init.body ? JSON.parse(String(init.body)) : undefined;
    const call: Call = { method: init.method!, path: pathname + search, body, authorization };
    calls.push(call);
    const said = await answer(call);
    if (said === "cut off") throw new TypeError("Failed to fetch");
    return new Response(JSON.stringify(said.body ?? {}), { status: said.status });
  });
  return calls;
}

/** An entry of the feed; `n` orders them, the newest highest. */
export function entry(n: number, more: Partial<Entry> = {}): Entry {
  const none = { type: null, subtitle: null, image: null, icon: null, link: null, category: null, thread: null, tags: [] };
  const marks = { seen_at: null, read_at: null, archived_at: null };
  const shown_at = new Date(Date.UTC(2027, 0, 1) + n * 1000).toISOString();
  const said = { title: `Number ${n}`, body: null, data: {}, actions: [], urgency: "normal" as const };
  return { id: `id-${String(n).padStart(4, "0")}`, ...none, ...said, ...marks, shown_at, ...more };
}

export const SESSION = { url: "https://push.example", user: "ann", token: () => "token" };
