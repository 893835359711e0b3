/** A user's session in a page or a worker. */

import { Api, type Session } from "./api.js";
import { Emitter } from "./emitter.js";
import { Feed, type Folder, type Only } from "./feed.js";
import { Live, type LiveState } from "./live.js";
import type { Click, Counts, Entry, LiveMessage, MarkedMessage } from "./messages.js";
import type { PreferenceChange, Preferences } from "./preferences.js";
import type { Problem } from "./problem.js";
import { Push, type PushOptions } from "./push.js";
import { sendReceipts } from "./receipts.js";
import { takeAway } from "./shown.js";
import { BrowserStorage, type Storage } from "./storage.js";
import { Tabs } from "./tabs.js";

/** Who, where, and how. */
export interface Options extends Session {
  /** For web push; left out, the page has its feed alone. */
  push?: PushOptions;
  /** Where things are kept; the browser's IndexedDB if left out. */
  storage?: Storage;
}

/** What a session tells. */
export interface Events {
  /** Something new is in the feed; each once. */
  entry: Entry;
  /** What is unread and unseen is another number. */
  counts: Counts;
  /** The connection stands differently. */
  state: LiveState;
  /** Something did not work; its `message` can be shown. */
  problem: Problem;
  /** The user clicked a shown notification while this page was open. */
  click: Click;
}

/** What tabs say to each other. */
type Said = { message: LiveMessage } | { state: LiveState } | { asks: true } | { polled: true } | { left: true };

/** What a service worker says to pages. */
interface WorkerSaid {
  waypost?: { pushed?: string; renewed?: true; receipts?: true; click?: Click };
}

/** A session: the feed of one user, followed live, and the token of this browser. */
export class Waypost extends Emitter<Events> {
  readonly feed: Feed;
  readonly push: Push;
  state: LiveState = "connecting";
  #api: Api;
  #storage: Storage;
  #views = new Set<Feed>();
  #tabs: Tabs<Said> | undefined;
  #live: Live;
  #running: AbortController | undefined;
  #isLeading = false;
  #counts = "";

  constructor(options: Options) {
    super();
    this.#api = new Api(options);
    this.#storage = options.storage ?? new BrowserStorage();
    this.push = new Push(this.#api, this.#storage, options.push);
    this.feed = this.view("inbox");
    this.#live = new Live(this.#api, {
      message: (message) => this.#lead({ message }),
      state: (state) => this.#lead({ state }),
      poll: () => this.#poll(),
    });
    this.feed.on("entry", (entry) => this.emit("entry", entry));
    this.feed.on("change", () => this.#tellCounts());
  }

  /** A list of its own of part of the feed, or of one type or tag, followed like the feed; give it back to `drop`. */
  view(folder: Folder, only?: Only): Feed {
    const feed = new Feed(this.#api, this.#storage, folder, () => this.push.deviceId, only);
    feed.on("problem", (problem) => this.emit("problem", problem));
    feed.on("marked", (marked) => {
      for (const each of this.#views) if (each !== feed) each.take(marked);
      if (marked.mark !== "seen") void this.#clear(marked);
    });
    this.#views.add(feed);
    return feed;
  }

  /** Follow a list no more. */
  drop(view: Feed): void {
    this.#views.delete(view);
  }

  /** What the user wants to be sent; `Problem` where it cannot be had. */
  preferences(): Promise<Preferences> {
    return this.#api.call("GET", this.#api.path("preferences"));
  }

  /** Change what the user wants to be sent; `Problem` where that does not work. */
  prefer(change: PreferenceChange): Promise<Preferences> {
    return this.#api.call("PATCH", this.#api.path("preferences"), change);
  }

  /** Begin: at the start of the page, and after a login. Ends when the first page of the feed is there. */
  async start(): Promise<void> {
    if (this.#running) return;
    const { signal } = (this.#running = new AbortController());
    this.#tabs = new Tabs<Said>(`waypost ${this.#api.url} ${this.#api.user}`, (said) => this.#hear(said));
    this.#tabs.say({ asks: true });
    navigator.serviceWorker?.addEventListener("message", this.#heed);
    void this.#tabs.lead(() => this.#live.run(signal), signal);
    void this.push.start();
    void sendReceipts(this.#api, this.#storage);
    await Promise.all([...this.#views].map((view) => view.start()));
  }

  /** End: nothing is followed any more. */
  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#isLeading = false;
    this.#tabs?.close();
    navigator.serviceWorker?.removeEventListener("message", this.#heed);
  }

  /** End for good: nothing more is sent to this browser, and nothing of the user is kept in it. */
  async logout(): Promise<void> {
    this.#tabs?.say({ left: true });
    this.stop();
    await Promise.all([this.push.unregister(), this.#forget()]);
  }

  /** End here, as the user has logged out in another tab. */
  #leave(): void {
    this.stop();
    this.push.leave();
    void this.#forget();
  }

  async #forget(): Promise<void> {
    await Promise.all([...this.#views].map((view) => view.forget()));
  }

  /** Load what is new, as nothing tells it, and have the other tabs do so; whether that worked. */
  #poll(): Promise<boolean> {
    this.#tabs?.say({ polled: true });
    return this.#refresh();
  }

  async #refresh(): Promise<boolean> {
    const done = await Promise.all([...this.#views].map((view) => view.refresh()));
    return done.every(Boolean);
  }

  /** Take what the connection of this tab says, and tell the others. */
  #lead(said: Said): void {
    if (!this.#running) return;
    this.#isLeading = true;
    this.#tabs?.say(said);
    this.#hear(said);
  }

  #hear(said: Said): void {
    if ("asks" in said) return this.#isLeading ? this.#tabs?.say({ state: this.state }) : undefined;
    if ("left" in said) return this.#leave();
    if ("polled" in said) return void this.#refresh();
    if ("state" in said) {
      this.state = said.state;
      return this.emit("state", said.state);
    }
    const { message } = said;
    if ("cursor" in message) this.#live.cursor = message.cursor;
    for (const view of this.#views) view.take(message);
    if (message.type === "marked" && message.mark !== "seen") void this.#clear(message);
  }

  /** Take what was read from the screen, too: this browser is not told of it by a push. */
  async #clear({ ids, unread }: MarkedMessage): Promise<void> {
    const read = unread ? (ids ?? []) : [...(ids ?? []), ...this.feed.known];
    const registration = await navigator.serviceWorker?.getRegistration();
    if (registration) await takeAway(registration, read, unread);
  }

  /** Take what the service worker says. */
  #heed = ({ data }: MessageEvent<WorkerSaid>): void => {
    const said = data?.waypost;
    if (said?.pushed) void this.#refresh();
    if (said?.renewed) void this.push.start();
    if (said?.receipts) void sendReceipts(this.#api, this.#storage);
    if (said?.click) this.emit("click", said.click);
  };

  #tellCounts(): void {
    const counts = JSON.stringify(this.feed.counts);
    if (counts === this.#counts) return;
    this.#counts = counts;
    this.emit("counts", this.feed.counts);
  }
}
