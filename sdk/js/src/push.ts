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

  constructor(api: Api, storage: Storage, options?: PushOptions) {
    this.#api = api;
    this.#storage = storage;
    this.#options = options;
  }

  /** Ask for permission, subscribe and register. Call it in answer to a click. Whether it is on now. */
  async enable(): Promise<boolean> {
    if (!this.#options || !("PushManager" in globalThis)) return false;
    if ((await Notification.requestPermission()) !== "granted") return false;
    const { pushManager } = await this.#worker(this.#options);
    const options = { userVisibleOnly: true, applicationServerKey: this.#options.key };
    const subscription = (await pushManager.getSubscription()) ?? (await pushManager.subscribe(options));
    return this.register(tokenOf(subscription, this.#options.appVersion));
  }

  /** Register what there is, without asking anybody: at every start, at login, and when the browser has renewed it. */
  async start(): Promise<boolean> {
    this.deviceId = (await this.#storage.get<Registered>(REGISTERED))?.id;
    const subscription = await this.#subscription();
    const token = subscription ? tokenOf(subscription, this.#options?.appVersion) : undefined;
    const waiting = await this.#storage.get<DeviceToken>(WAITING);
    const found = token ?? waiting;
    return found ? this.register(found) : false;
  }

  /** Tell Waypost a token: up to three times, after 1 s and 2 s. What it did not hear is kept for the next start. */
  async register(token: DeviceToken): Promise<boolean> {
    await this.#storage.set(WAITING, token);
    for (let attempt = 1; ; attempt++) {
      try {
        const { data } = await this.#api.call<{ data: { id: string } }>("POST", "/api/tokens", token);
        this.deviceId = data.id;
        await this.#storage.set(REGISTERED, { id: data.id, token: token.token } satisfies Registered);
        await this.#storage.delete(WAITING);
        return true;
      } catch (thrown) {
        if (attempt === ATTEMPTS || !problemOf(thrown).isPassing) return false;
        await wait(FIRST_WAIT_MS * 2 ** (attempt - 1));
      }
    }
  }

  /** Have nothing more sent here: at logout. Where Waypost cannot be told, the browser ends the subscription. */
  async unregister(): Promise<void> {
    const registered = await this.#storage.get<Registered>(REGISTERED);
    await this.#storage.delete(WAITING);
    await this.#storage.delete(REGISTERED);
    this.deviceId = undefined;
    if (!registered) return;
    try {
      await this.#api.call("DELETE", `/api/tokens/${encodeURIComponent(registered.id)}`);
    } catch (thrown) {
      if (problemOf(thrown).kind !== "gone") await (await this.#subscription())?.unsubscribe();
    }
  }

  async #subscription(): Promise<PushSubscription | null> {
    if (!this.#options || !("PushManager" in globalThis) || Notification.permission !== "granted") return null;
    return (await this.#worker(this.#options)).pushManager.getSubscription();
  }

  async #worker({ worker }: PushOptions): Promise<ServiceWorkerRegistration> {
    await navigator.serviceWorker.register(worker);
    return navigator.serviceWorker.ready;
  }
}
