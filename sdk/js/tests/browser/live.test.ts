import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { bring, complaintsOf, fill, newUser, open, ORIGIN, send, settled, Site, startBrowser, WAYPOST } from "./site.js";

const site = new Site();
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  await site.start();
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  site.stop();
});
beforeEach(async () => {
  context = await browser.newContext();
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") for (const page of context.pages()) console.log(page.url(), complaintsOf(page));
  await context.close();
});

const isLive = (page: Page) => page.waitForFunction(() => (window as any).inbox?.client?.state === "live");
const titles = (page: Page) => page.evaluate(() => (window as any).inbox.client.feed.items.map((each: any) => each.title) as string[]);

/** Note each entry that the page is told of, from now on. */
const follow = (page: Page) =>
  page.evaluate(() => {
    const came: string[] = ((window as any).came = []);
    (window as any).inbox.client.on("entry", (entry: any) => came.push(entry.title));
  });
const came = (page: Page) => page.evaluate(() => (window as any).came as string[]);

test("a cut connection goes on where it was: what came meanwhile is told once, in order", async () => {
  const user = newUser();
  const sockets: string[] = [];
  const page = await open(context, user);
  page.on("websocket", (socket) => sockets.push(socket.url()));
  await isLive(page);
  await follow(page);
  await send(user, "Before");
  await settled(async () => (await came(page)).length === 1);
  await context.setOffline(true);
  await page.waitForFunction(() => (window as any).inbox.client.state !== "live");
  for (const title of ["One", "Two", "Three"]) await bring(user, title);
  await context.setOffline(false);
  await settled(async () => (await came(page)).length >= 4);
  await isLive(page);
  await send(user, "After");
  await settled(async () => (await came(page)).length >= 5);
  expect(await came(page)).toEqual(["Before", "One", "Two", "Three", "After"]);
  expect(await titles(page)).toEqual(["After", "Three", "Two", "One", "Before"]);
  expect(sockets.at(-1)).toContain("&since=");
});

test("where no web socket comes through, the feed is polled", async () => {
  const user = newUser();
  await context.routeWebSocket(/\/live/, (socket) => void socket.close());
  const page = await open(context, user);
  await page.waitForFunction(() => (window as any).inbox?.client?.state === "polling");
  await follow(page);
  await send(user, "Polled");
  await settled(async () => (await came(page)).length === 1);
  expect(await titles(page)).toEqual(["Polled"]);
});

test("several tabs share one connection, and the next takes over when the one that holds it is closed", async () => {
  const user = newUser();
  const pages = [await open(context, user), await open(context, user), await open(context, user)];
  for (const page of pages) await isLive(page);
  const locks = async () => {
    const { held, pending } = await pages.at(-1)!.evaluate(() => navigator.locks.query());
    return { held: held!.length, waiting: pending!.length };
  };
  expect(await locks()).toEqual({ held: 1, waiting: 2 });
  for (const page of pages) await follow(page);
  await send(user, "To all");
  for (const page of pages) await settled(async () => (await came(page)).length === 1);
  await pages.shift()!.close();
  await send(user, "To the rest");
  for (const page of pages) await settled(async () => (await came(page)).length === 2);
  expect(await came(pages[0]!)).toEqual(["To all", "To the rest"]);
  expect(await locks()).toEqual({ held: 1, waiting: 1 });
});

test("what was loaded is shown while Waypost cannot be reached", async () => {
  const user = newUser();
  await fill(user, 2);
  const page = await open(context, user);
  await isLive(page);
  await settled(async () => (await titles(page)).length === 2);
  await context.route(`${WAYPOST}/v1/**`, (route) => route.abort());
  await page.reload();
  await page.getByRole("button", { name: "Notifications, 2 unread" }).click();
  await page.getByText("Number 2").waitFor();
  await page.getByRole("alert").getByText("You seem to be offline. Check your connection and try again.").waitFor();
  let press = () => {};
  const pressed = new Promise<void>((resolve) => (press = resolve));
  // Nothing is answered before the click: what the page tries by itself would take the button away.
  await context.route(`${WAYPOST}/v1/**`, async (route) => {
    await pressed;
    await route.continue().catch(() => {});
  });
  await page.getByRole("button", { name: "Try again" }).click();
  press();
  await page.getByRole("alert").waitFor({ state: "hidden" });
});

test("the core follows a feed in a worker", async () => {
  const user = newUser();
  const { readFile, readdir } = await import("node:fs/promises");
  const dist = new URL("../../dist/", import.meta.url);
  for (const name of await readdir(dist)) {
    if (name.endsWith(".js")) site.files.set(`/dist/${name}`, { type: "text/javascript", body: await readFile(new URL(name, dist), "utf8") });
  }
  const script = `import { Waypost } from "/dist/index.js";
    const client = new Waypost({ url: "${WAYPOST}", user: "${user}", token: async () => (await fetch("/token?user=${user}")).text() });
    client.on("state", (state) => postMessage(state));
    client.on("entry", (entry) => postMessage(entry.title));
    client.start();`;
  site.files.set("/follow.js", { type: "text/javascript", body: script });
  site.files.set("/begin.js", {
    type: "text/javascript",
    body: `window.heard = []; new Worker("/follow.js", { type: "module" }).onmessage = ({ data }) => heard.push(data);`,
  });
  const page = await context.newPage();
  await page.goto(`${ORIGIN}/?user=${newUser()}&script=/begin.js`);
  const heard = (what: string) => page.waitForFunction((said) => (window as any).heard?.includes(said), what);
  await heard("live");
  await send(user, "In a worker");
  await heard("In a worker");
});
