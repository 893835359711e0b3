/** Web push in Chromium: the subscription is the lab's, everything else is the browser's own. */

import type { Browser, BrowserContext, CDPSession, Page, Worker } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ask, askLab, complaintsOf, feedOf, newUser, open, ORIGIN, settled, Site, startBrowser, WAYPOST } from "./site.js";

const site = new Site();
let browser: Browser;
let context: BrowserContext;
let user: string;
let page: Page;

beforeAll(async () => {
  await site.start();
  site.files.set("/worker.js", { type: "text/javascript", body: `importScripts("${WAYPOST}/sdk/worker.js")` });
  site.files.set("/app.js", { type: "text/javascript", body: APP });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  site.stop();
});

/** The app: it says when to ask, and goes where a click leads. */
const APP = `
import { Waypost } from "${WAYPOST}/sdk/inbox.js";
const user = new URLSearchParams(location.search).get("user");
const token = async () => (await fetch("/token?user=" + user)).text();
const push = { worker: "/worker.js", key: "BA1Hxzyi", appVersion: "1.4.2" };
window.client = new Waypost({ url: "${WAYPOST}", user, token, push });
window.came = [];
client.on("entry", (entry) => came.push(entry.title));
client.on("click", (click) => history.pushState(null, "", "/screens/" + click.data.screen + "?user=" + user + "&script=/app.js"));
window.started = client.start();
`;

/** What Chromium cannot do without Google's push service: subscribe. The lab gives what a browser would have got. */
function subscribed(subscription: object): void {
  const made = { ...subscription, toJSON: () => subscription, unsubscribe: async () => true };
  const isOn = () => localStorage.getItem("subscribed") !== null;
  PushManager.prototype.subscribe = async () => (localStorage.setItem("subscribed", "yes"), made) as never;
  PushManager.prototype.getSubscription = async () => (isOn() ? (made as never) : null);
}

beforeEach(async () => {
  context = await browser.newContext();
  user = newUser();
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") for (const each of context.pages()) console.log(each.url(), complaintsOf(each));
  await context.close();
});

const subscription = () => askLab<{ endpoint: string }>("POST", "/subscriptions", {});
const devices = async () => (await ask<{ items: any[] }>("GET", `/v1/devices/${user}?inactive=true`)).items;
const waypostCalls = (of: Page, part: string) => {
  const seen: string[] = [];
  of.on("request", (request) => request.url().includes(part) && request.method() !== "OPTIONS" && seen.push(`${request.method()} ${new URL(request.url()).pathname}`));
  return seen;
};

async function openApp(): Promise<Page> {
  await context.grantPermissions(["notifications"], { origin: ORIGIN });
  await context.addInitScript(subscribed, await subscription());
  page = await open(context, user, { script: "/app.js" });
  await page.evaluate(() => (window as any).started);
  return page;
}

async function enable(): Promise<Worker> {
  expect(await page.evaluate(() => (window as any).client.push.enable())).toBe(true);
  await settled(() => context.serviceWorkers().length > 0);
  return context.serviceWorkers()[0]!;
}

/** Hand a push to the service worker, as Chromium does when one comes. */
async function deliver(payload: unknown, through: Page = page): Promise<void> {
  const session: CDPSession = await context.newCDPSession(through);
  const registered = new Promise<string>((resolve) =>
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const found = registrations.find((each) => each.scopeURL.startsWith(ORIGIN) && !each.isDeleted);
      if (found) resolve(found.registrationId);
    }),
  );
  await session.send("ServiceWorker.enable");
  const registrationId = await registered;
  await session.send("ServiceWorker.deliverPushMessage", { origin: ORIGIN, registrationId, data: JSON.stringify(payload) });
  await session.detach();
}

/** What the lab received of a notification, decrypted. */
async function received(id: string): Promise<any> {
  let found: any[] = [];
  await settled(async () => (found = (await askLab("GET", `/received?notification_id=${id}`)).received).length > 0);
  return found[0].payload;
}

async function sent(more: object = {}): Promise<{ id: string; payload: any }> {
  const content = { title: "Your parcel is here", body: "At the door.", link: `${ORIGIN}/parcel?user=${user}`, data: { screen: "parcels" } };
  const { id } = await ask<{ id: string }>("POST", "/v1/notifications", { user_id: user, channels: ["push", "inapp"], ...content, ...more });
  return { id, payload: await received(id) };
}

const shown = (of: Page = page) =>
  of.evaluate(async () => {
    const list = await (await navigator.serviceWorker.getRegistration())!.getNotifications();
    return list.map(({ title, body, tag }) => ({ title, body, tag }));
  });
const events = async (id: string) =>
  (await ask<{ events: { event: string }[] }>("GET", `/v1/notifications/${id}/events`)).events.map((each) => each.event);

/** Do in the worker what the user does to a notification: the events are made here, the listeners are real. */
async function act(worker: Worker, kind: "notificationclick" | "notificationclose", action = ""): Promise<{ windows: string[] }> {
  return worker.evaluate(
    async ([kind, action]) => {
      const scope = self as any;
      const windows: string[] = [];
      scope.clients.openWindow = async (url: string) => void windows.push(url); // it takes a real click to do that
      const done: Promise<unknown>[] = [];
      scope.ExtendableEvent.prototype.waitUntil = (promise: Promise<unknown>) => void done.push(promise);
      const [notification] = await scope.registration.getNotifications();
      scope.dispatchEvent(new scope.NotificationEvent(kind, { notification, action }));
      await Promise.all(done);
      return { windows };
    },
    [kind, action] as const,
  );
}

test("registered, created, sent, shown, clicked, read: the whole way", async () => {
  await openApp();
  const worker = await enable();
  const [device] = await devices();
  expect([device.platform, device.active, device.app_version]).toEqual(["web", true, "1.4.2"]);
  const { id, payload } = await sent();
  await deliver(payload);
  await settled(async () => (await shown()).length === 1);
  expect(await shown()).toEqual([{ title: "Your parcel is here", body: "At the door.", tag: "" }]);
  await settled(async () => (await page.evaluate(() => (window as any).came)).includes("Your parcel is here"));
  await settled(async () => (await events(id)).includes("displayed"));
  expect((await act(worker, "notificationclick")).windows).toEqual([`${ORIGIN}/parcel?user=${user}`]);
  await page.waitForURL(/\/screens\/parcels/);
  await settled(async () => (await events(id)).includes("opened"));
  const detail = await ask("GET", `/v1/notifications/${id}`);
  expect(detail.receipts.find((each: any) => each.device_id === device.device_id).status).toBe("opened");
  await page.evaluate((id) => (window as any).client.feed.mark("read", [id]), id);
  await settled(async () => (await feedOf(user)).items[0]!.read_at !== null);
  expect(await shown()).toEqual([]);
});

test("a push that comes while no page is open is shown", async () => {
  await openApp();
  await enable();
  const { payload } = await sent();
  await page.goto("about:blank");
  await deliver(payload);
  await page.goto(`${ORIGIN}/?user=${user}&script=/app.js`);
  await settled(async () => (await shown()).length === 1);
});

test("what comes twice is shown once, and a newer one with the same tag takes the place of the older", async () => {
  await openApp();
  await enable();
  const one = { waypost_id: "one", kind: "visible", title: "One", tag: "orders" };
  await deliver(one);
  await settled(async () => (await shown()).length === 1);
  await page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).forEach((each) => each.close()));
  await deliver(one);
  await deliver({ waypost_id: "two", kind: "visible", title: "Two", tag: "orders" });
  await deliver({ waypost_id: "three", kind: "visible", title: "Three", tag: "orders" });
  await settled(async () => (await shown()).some((each) => each.title === "Three"));
  expect(await shown()).toEqual([{ title: "Three", body: "", tag: "orders" }]);
});

test("what was read elsewhere is taken away, and the badge is set", async () => {
  await openApp();
  const worker = await enable();
  await worker.evaluate(() => {
    const scope = self as any;
    scope.badges = [];
    scope.navigator.setAppBadge = async (count: number) => void scope.badges.push(count);
  });
  await deliver({ waypost_id: "one", kind: "visible", title: "One", badge: 2 });
  await deliver({ waypost_id: "two", kind: "visible", title: "Two" });
  await settled(async () => (await shown()).length === 2);
  await deliver({ waypost_id: "three", kind: "silent", data: { waypost: { reads: ["one"], badge: 1 } } });
  await settled(async () => (await shown()).length === 1);
  expect((await shown())[0]!.title).toBe("Two");
  expect(await worker.evaluate(() => (self as any).badges)).toEqual([2, 1]);
});

test("what is read in a page goes from the screen of this browser, too", async () => {
  await openApp();
  await enable();
  const { id, payload } = await sent();
  await sent({ title: "Another" }); // so that something is left to read
  await deliver(payload);
  await deliver({ waypost_id: "other", kind: "visible", title: "Other" });
  await settled(async () => (await shown()).length === 2);
  await settled(() => page.evaluate((id) => (window as any).client.feed.items.some((each: any) => each.id === id), id));
  const marking = page.waitForRequest((request) => request.url().endsWith("/feed/marks"));
  await page.evaluate((id) => (window as any).client.feed.mark("read", [id]), id);
  expect((await marking).postDataJSON().device_id).toBe((await devices())[0].device_id);
  await settled(async () => (await shown()).length === 1);
  expect((await shown())[0]!.title).toBe("Other");
});

test("a button opens its own link and says which it was; what is put away is reported, too", async () => {
  await openApp();
  const worker = await enable();
  const { id, payload } = await sent({ actions: [{ id: "track", title: "Track", link: `${ORIGIN}/track` }] });
  await deliver(payload);
  await settled(async () => (await shown()).length === 1);
  expect((await act(worker, "notificationclick", "track")).windows).toEqual([`${ORIGIN}/track`]);
  await settled(async () => (await events(id)).includes("action"));
  const other = await sent();
  await deliver(other.payload);
  await settled(async () => (await shown()).length === 1);
  await act(worker, "notificationclose");
  await settled(async () => (await events(other.id)).includes("dismissed"));
});

test("a renewed subscription is registered with one call", async () => {
  await openApp();
  const worker = await enable();
  const calls = waypostCalls(page, "/api/tokens");
  const renewed = await subscription();
  await page.evaluate((made) => {
    PushManager.prototype.getSubscription = async () => ({ ...made, toJSON: () => made }) as never;
  }, renewed);
  await worker.evaluate(async (made) => {
    const scope = self as any;
    scope.ExtendableEvent.prototype.waitUntil = () => undefined;
    const event = new scope.ExtendableEvent("pushsubscriptionchange");
    scope.dispatchEvent(Object.assign(event, { newSubscription: { toJSON: () => made } }));
  }, renewed);
  await settled(async () => (await devices()).length === 2);
  await settled(() => calls.length === 1);
  expect(calls).toEqual(["POST /api/tokens"]);
});

test("a login ties the token to the user who logged in, and a logout ends it", async () => {
  await openApp();
  await enable();
  const first = user;
  user = newUser();
  await page.goto(`${ORIGIN}/?user=${user}&script=/app.js`);
  await settled(async () => (await devices()).some((each) => each.active));
  const before = await ask<{ items: any[] }>("GET", `/v1/devices/${first}`);
  expect(before.items.filter((each) => each.active)).toEqual([]);
  const calls = waypostCalls(page, "/api/tokens");
  await page.evaluate(() => (window as any).client.logout());
  expect((await devices()).map((each) => each.active)).toEqual([false]);
  expect(calls.map((each) => each.split("/")[0])).toEqual(["DELETE "]);
});

test("a start without permission asks nobody and calls nothing", async () => {
  const calls: string[] = [];
  context.on("request", (request) => request.url().includes("/api/tokens") && calls.push(request.url()));
  await context.addInitScript(subscribed, await subscription());
  page = await open(context, user, { script: "/app.js" });
  await page.evaluate(() => (window as any).started);
  expect(await page.evaluate(() => (window as any).client.push.start())).toBe(false);
  expect(await page.evaluate(() => (window as any).client.push.enable())).toBe(false); // headless Chromium denies
  expect(calls).toEqual([]);
});
