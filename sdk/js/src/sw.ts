/** The service worker's side of web push: shows what comes, counts it, and says what became of it. */

import type { Click } from "./messages.js";
import { optional, type Pushed, pushedOf } from "./pushed.js";
import { keepReceipt, type ReceiptEvent } from "./receipts.js";
import { Recent } from "./recent.js";
import { setBadge, takeAway } from "./shown.js";
import { BrowserStorage, type Storage } from "./storage.js";
import { type DeviceToken, REGISTERED, type Registered, tokenOf, WAITING } from "./token.js";

declare const self: ServiceWorkerGlobalScope;

const SEEN = "seen";

/** What was read on other devices: the ids to take away, and the number that is left. */
interface Reads {
  reads?: string[];
  badge?: number;
}

/** How an app has its own way. */
export interface WorkerOptions {
  /** The page to open for what has no link; the worker's own scope if left out. */
  linkOf?: (pushed: Pushed) => string | undefined;
  /** The icon of what has none. */
  icon?: string;
}

/** Listen to pushes and to what the user does with them. Call it once, when the worker is evaluated. */
export function listen(options: WorkerOptions = {}): void {
  const worker = new PushWorker(options, new BrowserStorage());
  self.addEventListener("push", (event) => event.waitUntil(worker.push(event)));
  self.addEventListener("notificationclick", (event) => event.waitUntil(worker.click(event)));
  self.addEventListener("notificationclose", (event) => event.waitUntil(worker.dismiss(event.notification)));
  self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(worker.renew(event)));
}

/** What the events do. */
export class PushWorker {
  #options: WorkerOptions;
  #storage: Storage;

  constructor(options: WorkerOptions, storage: Storage) {
    this.#options = options;
    this.#storage = storage;
  }

  /** Show a push, or do what a silent one says. */
  async push(event: PushEvent): Promise<void> {
    const pushed = pushedOf(event.data);
    const reads = pushed.data?.["waypost"] as Reads | undefined;
    if (reads) await takeAway(self.registration, reads.reads ?? [], reads.badge);
    const isShownByBrowser = "notification" in event && !!event.notification; // declarative: left to it
    if (pushed.title || pushed.body) {
      if (!(await this.#isNew(pushed.waypost_id))) return;
      if (!isShownByBrowser) await this.#show(pushed);
      await setBadge(pushed.badge);
      await this.#report(pushed, "displayed");
    }
    await tellPages({ pushed: pushed.waypost_id ?? "" });
  }

  /** Open the page of a clicked notification, and say so. */
  async click(event: NotificationEvent): Promise<void> {
    const { notification, action } = event;
    const pushed = notification.data as Pushed;
    notification.close();
    try {
      await openPage(this.#clickOf(pushed, action));
    } finally {
      await this.#report(pushed, action ? "action" : "opened", action);
    }
  }

  /** Say that a notification was put away. */
  dismiss(notification: Notification): Promise<void> {
    return this.#report(notification.data as Pushed, "dismissed");
  }

  /** Subscribe anew where the browser ended the subscription; a page registers it, or the next start does. */
  async renew(event: PushSubscriptionChangeEvent): Promise<void> {
    const subscription = event.newSubscription ?? (await this.#subscribed(event.oldSubscription));
    if (subscription) await this.#storage.set(WAITING, tokenOf(subscription) satisfies DeviceToken);
    await tellPages({ renewed: true });
  }

  /** Subscribe with the key of before; nothing where none is known or it does not work: a page does it then. */
  async #subscribed(old: PushSubscription | null | undefined): Promise<PushSubscription | undefined> {
    const known = old?.options.applicationServerKey;
    const key = known ?? (await this.#storage.get<Registered | null>(REGISTERED))?.key;
    if (!key) return undefined;
    const options = { userVisibleOnly: true, applicationServerKey: key };
    return self.registration.pushManager.subscribe(options).catch(() => undefined);
  }

  async #isNew(id: string | undefined): Promise<boolean> {
    if (id === undefined) return true;
    let isNew = false;
    await this.#storage.update<string[]>(SEEN, (ids) => {
      const seen = new Recent(ids);
      isNew = seen.add(id);
      return seen.list();
    });
    return isNew;
  }

  async #show(pushed: Pushed): Promise<void> {
    const { title, subtitle, body, tag, image, icon = this.#options.icon, actions = [] } = pushed;
    const options = {
      body: [title && subtitle, title && body].filter(Boolean).join("\n"),
      data: pushed,
      actions: actions.map((each) => ({ action: each.action, title: each.title, ...optional("icon", each.icon) })),
      ...optional("icon", icon),
      ...optional("image", image),
      ...(tag ? { tag, renotify: true } : {}),
    };
    await self.registration.showNotification(title ?? body ?? "", options);
  }

  #clickOf(pushed: Pushed, action: string): Click {
    const button = pushed.actions?.find((each) => each.action === action);
    const link = button?.link ?? pushed.link ?? this.#options.linkOf?.(pushed);
    return { id: pushed.waypost_id ?? "", link: followed(link), action: action || null, data: pushed.data ?? {} };
  }

  /** Report by the signed link that came along; what cannot go now, a page sends later. */
  async #report(pushed: Pushed, event: ReceiptEvent, action?: string): Promise<void> {
    const link = pushed.data?.["waypost_receipt"];
    const said = action ? { event, action } : { event };
    if (typeof link === "string") {
      const answer = await fetch(`${link}?${new URLSearchParams(said)}`, { method: "POST" }).catch(() => undefined);
      if (answer && answer.status < 500 && answer.status !== 429) return;
    }
    if (!pushed.waypost_id) return;
    const token = typeof link === "string" ? { token: link.split("/").at(-1)! } : {};
    await keepReceipt(this.#storage, { ...said, notification_id: pushed.waypost_id, ...token });
    await tellPages({ receipts: true });
  }
}

/** A link that a page may follow: the address of a page, also from here. What else is pushed, a script say, is none. */
function followed(link: string | undefined): string | null {
  if (link === undefined || !URL.canParse(link, self.location.href)) return null;
  return /^https?:$/.test(new URL(link, self.location.href).protocol) ? link : null;
}

/** Bring the page of a link to the front: the one that shows it already, else a new one. */
async function openPage(click: Click): Promise<void> {
  const target = new URL(click.link ?? self.registration.scope, self.location.href);
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = windows.find((each) => each.url === target.href) ?? (click.link ? undefined : windows[0]);
  // A browser that lets no page come to the front keeps nothing else from being done.
  if (open) await open.focus().catch(() => undefined);
  else await self.clients.openWindow(target.href).catch(() => undefined);
  await tellPages({ click }, open ? [open] : windows);
}

/** Tell open pages. */
async function tellPages(said: object, windows?: readonly WindowClient[]): Promise<void> {
  const pages = windows ?? (await self.clients.matchAll({ type: "window", includeUncontrolled: true }));
  for (const page of pages) page.postMessage({ waypost: said });
}
