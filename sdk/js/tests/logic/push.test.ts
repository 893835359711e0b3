import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Api } from "../../src/api.js";
import { Push } from "../../src/push.js";
import { MemoryStorage } from "../../src/storage.js";
import { type DeviceToken, REGISTERED, WAITING } from "../../src/token.js";
import { SESSION, serve } from "./fakes.js";

const TOKEN: DeviceToken = {
  platform: "web",
  token: "https://push.example/one",
  keys: { p256dh: "key", auth: "auth" },
  device_info: { model: "Chrome/156", os_version: "Linux", app_version: "1.4.2" },
};
const TAKEN = { status: 201, body: { success: true, data: { id: "device-1" } } };
const OPTIONS = { worker: "/worker.js", key: "BA1Hxzy_-A", appVersion: "1.4.2" };

let storage: MemoryStorage;
let waits: number[];

beforeEach(() => {
  storage = new MemoryStorage();
  waits = [];
  vi.stubGlobal("setTimeout", (act: () => void, ms: number) => {
    waits.push(ms);
    queueMicrotask(act);
    return 0;
  });
});
afterEach(() => vi.unstubAllGlobals());

function push(options = OPTIONS): Push {
  return new Push(new Api(SESSION), storage, options);
}

/** A browser that is subscribed with `endpoint` for a key, and whose user decides `permission`. */
function browser(permission: NotificationPermission, endpoint?: string, key = OPTIONS.key): { asked: number; unsubscribed: number } {
  const done = { asked: 0, unsubscribed: 0 };
  const subscription = (url: string, key: string) => ({
    options: { applicationServerKey: new Uint8Array(Buffer.from(key, "base64url")).buffer },
    toJSON: () => ({ endpoint: url, keys: { p256dh: "key", auth: "auth" } }),
    unsubscribe: async () => ((current = null), (done.unsubscribed += 1)),
  });
  let current = endpoint === undefined ? null : subscription(endpoint, key);
  const pushManager = {
    getSubscription: async () => current,
    subscribe: async (options: PushSubscriptionOptionsInit) =>
      (current ??= subscription("https://push.example/new", options.applicationServerKey as string)),
  };
  const registration = { pushManager };
  vi.stubGlobal("PushManager", class {});
  vi.stubGlobal("Notification", {
    permission,
    requestPermission: async () => ((done.asked += 1), permission),
  });
  vi.stubGlobal("navigator", {
    userAgent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36",
    serviceWorker: { register: async () => registration, ready: Promise.resolve(registration) },
  });
  return done;
}

test("a registration is tried three times, with waits of 1 s and 2 s", async () => {
  const calls = serve(() => ({ status: 503 }));
  expect(await push().register(TOKEN)).toBe(false);
  expect(calls.length).toBe(3);
  expect(waits).toEqual([1000, 2000]);
});

test("what could not be registered is kept, sent at the next start, and then forgotten", async () => {
  const native: DeviceToken = { ...TOKEN, platform: "android" }; // a browser's own token is asked of it anew
  serve(() => "cut off");
  expect(await push().register(native)).toBe(false);
  expect(await storage.get(WAITING)).toEqual(native);
  const calls = serve(() => TAKEN);
  browser("default");
  expect(await push().start()).toBe(true);
  expect(calls.map((each) => [each.method, each.path, each.body])).toEqual([["POST", "/api/tokens", native]]);
  expect(await storage.get(WAITING)).toBeUndefined();
  expect(await push().start()).toBe(false);
});

test("a browser's token that could not be registered is sent at the next start, and then forgotten", async () => {
  browser("granted", TOKEN.token);
  serve(() => "cut off");
  expect(await push().enable()).toBe(false);
  browser("granted"); // the browser has lost it meanwhile
  const calls = serve(() => TAKEN);
  expect(await push().start()).toBe(true);
  expect(calls.map((each) => each.body.token)).toEqual(["https://push.example/new"]);
  expect(await storage.get(WAITING)).toBeUndefined();
});

test("what is refused for good is not tried again", async () => {
  const calls = serve(() => ({ status: 400 }));
  expect(await push().register(TOKEN)).toBe(false);
  expect(calls.length).toBe(1);
});

test("a success after a failure ends the attempts", async () => {
  let answers = 0;
  const calls = serve(() => ((answers += 1) === 1 ? "cut off" : TAKEN));
  expect(await push().register(TOKEN)).toBe(true);
  expect(calls.length).toBe(2);
  expect(waits).toEqual([1000]);
});

test("without permission nothing is called and nothing is complained of", async () => {
  const calls = serve(() => TAKEN);
  const done = browser("denied", "https://push.example/one");
  expect(await push().enable()).toBe(false);
  expect(await push().start()).toBe(false);
  expect(done.asked).toBe(1);
  expect(calls).toEqual([]);
});

test("a start asks nobody, and registers the token that there is with what is known of the device", async () => {
  const calls = serve(() => TAKEN);
  const done = browser("granted", "https://push.example/one");
  expect(await push().start()).toBe(true);
  expect(done.asked).toBe(0);
  expect(calls.map((each) => each.body)).toEqual([
    {
      platform: "web",
      token: "https://push.example/one",
      keys: { p256dh: "key", auth: "auth" },
      device_info: { model: "Chrome/156", os_version: "Linux x86_64", app_version: "1.4.2" },
    },
  ]);
});

test("enabling asks, subscribes, and registers the new token", async () => {
  const calls = serve(() => TAKEN);
  browser("granted");
  expect(await push().enable()).toBe(true);
  expect(calls.map((each) => each.body.token)).toEqual(["https://push.example/new"]);
});

test("a logout takes the token back", async () => {
  const calls = serve(() => TAKEN);
  await push().register(TOKEN);
  await push().unregister();
  expect(calls.map((each) => `${each.method} ${each.path}`)).toEqual(["POST /api/tokens", "DELETE /api/tokens/device-1"]);
  expect(await storage.get(REGISTERED)).toBeNull();
});

test("a logout that reaches nobody ends the subscription in the browser", async () => {
  serve(() => TAKEN);
  await push().register(TOKEN);
  const done = browser("granted", TOKEN.token);
  serve(() => "cut off");
  await push().unregister();
  expect(done.unsubscribed).toBe(1);
});

test("a token that waits is not registered where the user has taken the permission back", async () => {
  serve(() => "cut off");
  await push().register(TOKEN);
  const calls = serve(() => TAKEN);
  browser("default");
  expect(await push().start()).toBe(false);
  expect(calls).toEqual([]);
});

test("a subscription that was lost, or made for another key, is made anew at the next start", async () => {
  serve(() => TAKEN);
  await push().register(TOKEN);
  const calls = serve(() => TAKEN);
  expect(browser("granted", TOKEN.token, "BOld").unsubscribed).toBe(0);
  expect(await push().start()).toBe(true);
  browser("granted");
  expect(await push().start()).toBe(true);
  expect(calls.map((each) => each.body.token)).toEqual(["https://push.example/new", "https://push.example/new"]);
});

test("a subscription for the key of today stays, and none is made where nobody asked for one", async () => {
  const calls = serve(() => TAKEN);
  browser("granted");
  expect(await push().start()).toBe(false);
  expect(calls).toEqual([]);
  const done = browser("granted", TOKEN.token);
  expect([await push().enable(), await push().start()]).toEqual([true, true]);
  expect(calls.map((each) => each.body.token)).toEqual([TOKEN.token, TOKEN.token]);
  expect(done.unsubscribed).toBe(0);
});

test("a logout before the registration is known ends the subscription, and has the server told of its token", async () => {
  const calls = serve(() => TAKEN);
  const done = browser("granted", TOKEN.token);
  await push().unregister();
  expect(done.unsubscribed).toBe(1);
  expect(calls.map((each) => `${each.method} ${each.path}`)).toEqual([`DELETE /api/tokens/${encodeURIComponent(TOKEN.token)}`]);
});

test("a registration that waits for its next attempt is given up at logout", async () => {
  const one = push();
  const calls = serve(async ({ method }) => {
    if (method === "POST") await one.unregister();
    return { status: 503 };
  });
  expect(await one.register(TOKEN)).toBe(false);
  expect(calls.map((each) => each.method)).toEqual(["POST"]);
  expect(await storage.get(WAITING)).toBeUndefined();
});

test("a registration that the server takes after the logout is given back", async () => {
  const one = push();
  const calls = serve(async ({ method }) => {
    if (method === "POST") await one.unregister();
    return TAKEN;
  });
  expect(await one.register(TOKEN)).toBe(false);
  expect(calls.map((each) => `${each.method} ${each.path}`)).toEqual(["POST /api/tokens", "DELETE /api/tokens/device-1"]);
  expect(await storage.get(REGISTERED)).toBeNull();
});

test("a second logout leaves the subscription to the next user, one in the middle of a login does not", async () => {
  const done = browser("granted", TOKEN.token);
  serve(() => TAKEN);
  await push().start();
  await push().unregister();
  const calls = serve(() => ({ status: 503 }));
  await push().unregister();
  expect([calls, done.unsubscribed]).toEqual([[], 0]);
  expect(await push().start()).toBe(false);
  await push().unregister();
  expect(done.unsubscribed).toBe(1);
});
