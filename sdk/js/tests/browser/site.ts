/** A site with Waypost's inbox in it, its backend, and the browser that opens it. */

import { createHmac, randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import { type BrowserContext, type Browser, chromium, type Page } from "playwright-core";

/** What the Python side has started: a `waypost serve` that lets pages of `origin` call it. */
const { WAYPOST_URL: url, WAYPOST_API_KEY: key, SITE_PORTS: ports, TOKEN_SECRET: secret } = process.env as Record<
  string,
  string
>;
export const WAYPOST = url!;
/** Files that run at once have a port each. */
const port = ports!.split(",")[Number(process.env["VITEST_POOL_ID"]) - 1];
export const ORIGIN = `http://localhost:${port}`;

/** The strictest policy that a page of ours can have: no inline script or style, no eval, trusted types. */
const POLICY =
  `default-src 'none'; worker-src 'self'; script-src 'self' ${url}; connect-src 'self' ${url} ${url!.replace("http", "ws")}; ` +
  `img-src 'self' data:; style-src 'self'`;
const TRUSTED_TYPES = "; require-trusted-types-for 'script'; trusted-types 'none'";

const STYLE = "body { margin: 0; padding: 12px; font-family: sans-serif; text-align: end; background: Canvas; color: CanvasText } :root { color-scheme: light dark }";

/** The script of every page: the app gives the inbox what it needs. */
const SCRIPT = `
import { WaypostInbox } from "${url}/sdk/inbox.js";
const inbox = document.querySelector("waypost-inbox");
inbox.token = async () => (await fetch("/token?user=" + inbox.getAttribute("user"))).text();
window.inbox = inbox;
`;

/** A user who has nothing yet. */
export function newUser(): string {
  return `user-${randomUUID()}`;
}

/** The token that the site's backend gives its user. */
export function tokenOf(user: string, seconds = 600): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: "https://site.example", aud: "waypost", sub: user, iat: now, exp: now + seconds };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${signed}.${createHmac("sha256", secret!).update(signed).digest("base64url")}`;
}

/** One call of Waypost's API by the site's backend. */
export async function ask<T = any>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(url + path, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** Send a notification into a user's feed; its id. */
export async function send(user: string, title: string, more: object = {}): Promise<string> {
  const said = { user_id: user, title, channels: ["inapp"], idempotency_key: randomUUID(), ...more };
  return (await ask<{ id: string }>("POST", "/v1/notifications", said)).id;
}

/** Send one, and wait until it is in the feed: what is sent at once may come in another order. */
export async function bring(user: string, title: string): Promise<void> {
  const id = await send(user, title);
  await settled(async () => (await feedOf(user)).items.some((each) => each.id === id));
}

/** Bring so many into the feed of a user, one after the other. */
export async function fill(user: string, count: number): Promise<void> {
  for (let n = 1; n <= count; n++) await bring(user, `Number ${n}`);
}

export async function feedOf(user: string): Promise<{ items: { id: string; title: string; read_at: string | null }[]; unread: number }> {
  return ask("GET", `/v1/users/${user}/feed?limit=500`);
}

/** Wait until `condition` holds. */
export async function settled(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 25));
}

/** The site: pages with the inbox, tokens, and files that a test adds. */
export class Site {
  readonly files = new Map<string, { type: string; body: string }>();
  #server: Server | undefined;

  async start(): Promise<void> {
    this.files.set("/site.js", { type: "text/javascript", body: SCRIPT });
    this.files.set("/site.css", { type: "text/css", body: STYLE });
    this.#server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url!, ORIGIN);
      const file = this.files.get(pathname);
      // A page that starts a worker by its address cannot do so under trusted types.
      const isTrusted = !file && !searchParams.has("script");
      response.setHeader("content-security-policy", isTrusted ? POLICY + TRUSTED_TYPES : POLICY);
      if (file) response.setHeader("content-type", file.type).end(file.body);
      else if (pathname === "/token") response.end(tokenOf(searchParams.get("user")!));
      else response.setHeader("content-type", "text/html; charset=utf-8").end(pageFor(searchParams));
    });
    await new Promise<void>((resolve) => this.#server!.listen(Number(port), "localhost", resolve));
  }

  stop(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }
}

function pageFor(said: URLSearchParams): string {
  const attributes = ["theme", "lang", "align", "preferences"].map((each) => (said.has(each) ? ` ${each}="${said.get(each)}"` : ""));
  return `<!doctype html><html lang="${said.get("lang") ?? "en"}" dir="${said.get("dir") ?? "ltr"}"><head><meta charset="utf-8">
<title>A site</title><meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/site.css"><link rel="icon" href="data:,">
<script type="module" src="${said.get("script") ?? "/site.js"}"></script></head><body><main><h1>A site</h1>
<waypost-inbox url="${url}" user="${said.get("user")}"${attributes.join("")}>${said.get("inside") ?? ""}</waypost-inbox></main></body></html>`;
}

/** Start Debian's Chromium. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
}

/** One call of the lab, which stands in for the push services. */
export async function askLab<T = any>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(process.env["LAB_ADMIN"]! + path, { method, body: body === undefined ? null : JSON.stringify(body) });
  return (await answer.json()) as T;
}

const heard = new WeakMap<Page, string[]>();

/** What a page's scripts, or its policy, complained of. */
export function complaintsOf(page: Page): string[] {
  return heard.get(page) ?? [];
}

/** Open a page of the site. */
export async function open(context: BrowserContext, user: string, more: Record<string, string> = {}): Promise<Page> {
  const page = await context.newPage();
  const complaints: string[] = [];
  heard.set(page, complaints);
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.setDefaultTimeout(20_000);
  await page.goto(`${ORIGIN}/?${new URLSearchParams({ user, ...more })}`);
  return page;
}
