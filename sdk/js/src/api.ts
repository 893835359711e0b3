/** Calls of Waypost's API with the user's own token. */

import { Problem, refusal } from "./problem.js";

const TIMEOUT_MS = 20_000;

/** Gives the user's token; `isRefused` says that the one it gave last was not taken, so that it is made anew. */
export type TokenProvider = (isRefused: boolean) => string | Promise<string>;

/** Where Waypost is, and who calls. */
export interface Session {
  /** The address of Waypost, such as `https://push.example.com`. */
  url: string;
  /** The user's id, which is the subject of the token. */
  user: string;
  token: TokenProvider;
}

/** Calls for one user. */
export class Api {
  readonly url: string;
  readonly user: string;
  /** The marks that are on their way, of all lists, in order: what is loaded meanwhile would come as it was before. */
  line: Promise<unknown> = Promise.resolve();
  #token: TokenProvider;
  #known: Promise<string> | undefined;

  constructor(session: Session) {
    this.url = session.url.replace(/\/+$/, "");
    this.user = session.user;
    this.#token = session.token;
  }

  /** The path of what belongs to the user. */
  path(rest: string): string {
    return `/v1/users/${encodeURIComponent(this.user)}/${rest}`;
  }

  /** Call, once more with a new token where the first is refused; `Problem` where it does not work. */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    let answer = await this.#send(method, path, body, false);
    if (answer.status === 401) answer = await this.#send(method, path, body, true);
    if (!answer.ok) throw await refusal(answer);
    try {
      return (await answer.json()) as T;
    } catch {
      throw new Problem("offline", "cut_off");
    }
  }

  async #send(method: string, path: string, body: unknown, isRefused: boolean): Promise<Response> {
    const headers: Record<string, string> = { authorization: `Bearer ${await this.#bearer(isRefused)}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const init: RequestInit = { method, headers, signal: AbortSignal.timeout(TIMEOUT_MS), cache: "no-store" };
    if (method !== "GET") init.keepalive = true; // a click that marks may lead to another page
    if (body !== undefined) init.body = JSON.stringify(body);
    try {
      return await fetch(this.url + path, init);
    } catch {
      throw new Problem("offline");
    }
  }

  async #bearer(isRefused: boolean): Promise<string> {
    if (isRefused) this.#known = undefined;
    this.#known ??= Promise.resolve().then(() => this.#token(isRefused));
    try {
      return await this.#known;
    } catch {
      this.#known = undefined;
      throw new Problem(navigator.onLine === false ? "offline" : "signed-out", "no_token");
    }
  }
}
