/** The token of this browser for web push: asked for, registered, renewed, and given back. */

import type { Api } from "./api.js";
import { problemOf } from "./problem.js";
import type { Storage } from "./storage.js";
import { type DeviceToken, REGISTERED, type Registered, tokenOf, WAITING } from "./token.js";
import { wait } from "./waiting.js";

const ATTEMPTS = 3;
const FIRST_WAIT_MS = 1_000;

/** How this browser subscribes. */
export interface PushOptions {
  /** The path of the service worker, such as `/worker.js`. */
  worker: string;
  /** The public VAPID key: `waypost vapid --public vapid.pem`. */
  key: string;
  /** The version of your app. */
  appVersion?: string;
}

/** Manages the token. */
export class Push {
  /** The id of this browser at Waypost, once it is registered. */
  deviceId: string | undefined;
  #api: Api;
  #storage: Storage;
  #options: PushOptions | undefined;
  /** Aborts at logout: what is registered then is not. */
  #session = new AbortController();

  constructor(api: Api, storage: Storage, options?: PushOptions) {
    this.#api = api;
    this.#storage = storage;
    this.#options = options;
  }

  /** Ask for permission, subscribe and register. Call it in answer to a click. Whether it is on now. */
  async enable(): Promise<boolean> {
    const { signal } = this.#session;
    if (!this.#options || !("PushManager" in globalThis)) return false;
    if ((await Notification.requestPermission()) !== "granted") return false;
    return this.#register(tokenOf(await this.#subscribed(this.#options), this.#options.appVersion), signal);
  }

  /** Register what there is, without asking anybody: at every start, at login, and when the browser has renewed it. */
  async start(): Promise<boolean> {
    const { signal } = this.#session;
    const registered = await this.#storage.get<Registered | null>(REGISTERED);
    if (signal.aborted) return false;
    this.deviceId = registered?.id;
    const waiting = await this.#storage.get<DeviceToken>(WAITING);
    const subscription = await this.#found(!!(registered ?? waiting));
    const own = waiting?.platform === "web" ? undefined : waiting; // a browser's is worth nothing without its subscription
    const token = subscription ? tokenOf(subscription, this.#options?.appVersion) : own;
    return token ? this.#register(token, signal) : false;
  }

  /** Tell Waypost a token: up to three times, after 1 s and 2 s. What it did not hear is kept for the next start. */
  register(token: DeviceToken): Promise<boolean> {
    return this.#register(token, this.#session.signal);
  }

  /** Register it unless the session has ended meanwhile. */
  async #register(token: DeviceToken, signal: AbortSignal): Promise<boolean> {
    if (!signal.aborted) await this.#storage.set(WAITING, token);
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        const { data } = await this.#api.call<{ data: { id: string } }>("POST", "/api/tokens", token);
        if (!signal.aborted) return await this.#keep({ id: data.id, token: token.token, key: this.#options?.key });
        await this.#giveBack(data.id); // the user has logged out meanwhile
      } catch (thrown) {
        if (attempt === ATTEMPTS || !problemOf(thrown).isPassing) return false;
        await wait(FIRST_WAIT_MS * 2 ** (attempt - 1), signal);
      }
    }
    return false;
  }

  /** Have nothing more sent here: at logout. Where Waypost cannot be told, or told nothing, the browser ends the
   * subscription. */
  async unregister(): Promise<void> {
    this.leave();
    const registered = await this.#storage.get<Registered | null>(REGISTERED);
    const waiting = await this.#storage.get<DeviceToken>(WAITING);
    await this.#storage.delete(WAITING);
    await this.#storage.set(REGISTERED, null); // so that a second logout, in another tab say, leaves the subscription
    if (registered) return this.#giveBack(registered.id);
    if (registered === null && !waiting) return;
    const subscription = await this.#found();
    await subscription?.unsubscribe().catch(() => false);
    if (subscription) await this.#giveBack(tokenOf(subscription).token);
  }

  /** Register nothing more of what is on its way: the user has logged out, here or in another tab. */
  leave(): void {
    this.#session.abort();
    this.#session = new AbortController();
    this.deviceId = undefined;
  }

  async #keep(registered: Registered): Promise<true> {
    this.deviceId = registered.id;
    await this.#storage.set(REGISTERED, registered);
    await this.#storage.delete(WAITING);
    return true;
  }

  /** Tell Waypost to send nothing more to what has this id or token. */
  async #giveBack(known: string): Promise<void> {
    try {
      await this.#api.call("DELETE", `/api/tokens/${encodeURIComponent(known)}`);
    } catch (thrown) {
      if (problemOf(thrown).kind !== "gone") await (await this.#found())?.unsubscribe();
    }
  }

  /** The subscription that there is; made anew where it `isWanted` and is lost, or was made for another key. */
  async #found(isWanted = false): Promise<PushSubscription | null> {
    if (!this.#options || !("PushManager" in globalThis) || Notification.permission !== "granted") return null;
    if (isWanted) return this.#subscribed(this.#options).catch(() => null); // the next start tries again
    return (await this.#worker(this.#options)).pushManager.getSubscription();
  }

  /** The subscription for the key of today. */
  async #subscribed(options: PushOptions): Promise<PushSubscription> {
    const { pushManager } = await this.#worker(options);
    const found = await pushManager.getSubscription();
    if (found && isFor(options.key, found)) return found;
    await found?.unsubscribe();
    return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: options.key });
  }

  async #worker({ worker }: PushOptions): Promise<ServiceWorkerRegistration> {
    await navigator.serviceWorker.register(worker);
    return navigator.serviceWorker.ready;
  }
}

/** Whether a subscription was made for a key; it is taken to be where the browser does not say. */
function isFor(key: string, { options }: PushSubscription): boolean {
  const used = options?.applicationServerKey;
  const plain = (text: string) => text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  return !used || plain(btoa(String.fromCharCode(...new Uint8Array(used)))) === plain(key);
}
