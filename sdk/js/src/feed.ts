/** The feed as a page shows it: loaded by pages, changed at once, put back where the server refuses. */

import type { Api } from "./api.js";
import { Emitter } from "./emitter.js";
import { counted, marked, removes, withEntry, withFirstPage, withNextPage } from "./entries.js";
import type { Counts, Entry, LiveMessage, Mark, MarkedMessage, Page } from "./messages.js";
import { type Problem, problemOf } from "./problem.js";
import { Recent } from "./recent.js";
import type { Storage } from "./storage.js";

/** Entries of a page. */
const PAGE = 20;
/** Ids of one call. */
const IDS = 500;

/** What a feed tells. */
export interface FeedEvents {
  /** The list, the counts, or how loading stands is another. */
  change: Feed;
  /** An entry came while the feed was followed; each once. */
  entry: Entry;
  /** The user marked entries here, and the server took it. */
  marked: MarkedMessage;
  /** Something did not work; its `message` can be shown. */
  problem: Problem;
}

/** How the first page stands. */
export type FeedStatus = "loading" | "ready" | "failed";

/** The part of the feed that is listed. */
export type Folder = "inbox" | "unread";

/** What is listed alone of a folder. */
export interface Only {
  type?: string;
  tag?: string;
}

interface Kept extends Counts {
  items: Entry[];
  recent: string[];
}

/** An entry before and after a mark; nothing after: it is not listed any more. */
type Change = readonly [Entry, Entry | undefined];

/** What the server is asked for: entries by their ids, or all up to one. */
interface Marking {
  mark: Mark;
  ids?: readonly string[];
  until?: string;
}

type Concerns = (id: string) => boolean;

/** The entries of a user: all of the inbox, or what is unread of it, or has one type or tag. The counts are of all of it. */
export class Feed extends Emitter<FeedEvents> {
  items: readonly Entry[] = [];
  counts: Counts = { unread: 0, unseen: 0 };
  status: FeedStatus = "loading";
  /** Whether entries could not be loaded the last time. */
  hasFailed = false;
  #api: Api;
  #storage: Storage;
  #folder: Folder;
  #only: Only;
  #deviceId: () => string | undefined;
  /** Where the next page begins; null past the end, undefined while no page is there, but what was kept may be. */
  #next: string | null | undefined;
  #recent = new Recent();
  #isFollowed = false;
  #loading: Promise<boolean> | undefined;
  #queued: Promise<boolean> | undefined;
  /** Marks that are on their way, and whom each concerns. */
  #marks = new Set<Concerns>();
  /** The counts that a live connection told while marks were on their way, and whether a mark was among its news. */
  #told: { counts: Counts; isMarked: boolean } | undefined;
  #keeping: Promise<void> | undefined;
  #isEnded = false;

  constructor(
    api: Api,
    storage: Storage,
    folder: Folder = "inbox",
    deviceId: () => string | undefined = () => undefined,
    only: Only = {},
  ) {
    super();
    this.#api = api;
    this.#storage = storage;
    this.#folder = folder;
    this.#only = only;
    this.#deviceId = deviceId;
  }

  /** Whether there are older entries to load. */
  get hasMore(): boolean {
    return typeof this.#next === "string";
  }

  /** Whether entries are being loaded. */
  get isLoading(): boolean {
    return this.#loading !== undefined;
  }

  /** Show what was kept the last time, then load the first page. */
  async start(): Promise<boolean> {
    this.#isEnded = false;
    const kept = this.#isWhole ? await this.#storage.get<Kept>(this.#key) : undefined;
    if (kept && !this.items.length) {
      this.#recent = new Recent(kept.recent);
      if (kept.items.length) this.status = "ready";
      this.#become(kept.items, kept);
    }
    return this.refresh();
  }

  /** Load the first page anew; whether that worked. */
  refresh(): Promise<boolean> {
    if (!this.#loading) return this.#load(null);
    this.#queued ??= this.#loading.then(() => {
      this.#queued = undefined;
      return this.#load(null);
    });
    return this.#queued;
  }

  /** Load the next page: not while one is loading, nor past the end. */
  more(): Promise<boolean> {
    if (this.#loading) return this.#loading;
    return typeof this.#next === "string" ? this.#load(this.#next) : Promise.resolve(true);
  }

  /** Mark entries: at once here, then on the server; put back where it refuses. Whether it took it. */
  mark(mark: Mark, ids: readonly string[]): Promise<boolean> {
    return this.#mark({ mark, ids }, (id) => ids.includes(id));
  }

  /**
   * Mark all of the inbox up to the newest entry that is here; what is unread then shows, as it is loaded anew.
   * Of a type or a tag, mark what is here, the newest 500 at most.
   */
  async markAll(mark: Mark): Promise<boolean> {
    if (this.#isSifted) return this.mark(mark, this.items.slice(0, IDS).map((each) => each.id));
    const until = this.items[0]?.id;
    if (until === undefined) return true;
    const here = new Set(this.items.map((each) => each.id)); // what comes meanwhile is not meant
    const isTaken = await this.#mark({ mark, until }, (id) => here.has(id));
    if (isTaken && mark !== "seen" && this.counts.unread) void this.refresh();
    return isTaken;
  }

  /** Take back a deletion. */
  restore(entry: Entry): Promise<boolean> {
    return this.#mark({ mark: "restored", ids: [entry.id] }, (id) => id === entry.id, entry);
  }

  /** Take what a live connection says. */
  take(said: LiveMessage): void {
    if (said.type === "entry") this.#arrive(said.entry, said);
    if (said.type === "marked") this.#markedElsewhere(said);
    if (said.type === "fetch") void this.refresh();
    if (said.type === "hello") void this.#catchUp(said);
  }

  /** The ids that were here last, read or not. */
  get known(): readonly string[] {
    return this.#recent.list();
  }

  /** Forget what is here and what is kept, until it is started anew. */
  async forget(): Promise<void> {
    this.#isEnded = true;
    this.#next = undefined;
    this.#recent = new Recent();
    this.#isFollowed = false;
    this.status = "loading";
    this.#become([], { unread: 0, unseen: 0 });
    await this.#keeping;
    await this.#storage.delete(this.#key);
  }

  get #isSifted(): boolean {
    return this.#only.type !== undefined || this.#only.tag !== undefined;
  }

  /** Whether it is what the next start of the page shows. */
  get #isWhole(): boolean {
    return this.#folder === "inbox" && !this.#isSifted;
  }

  /** Whether an entry is of the type and tag that are listed. */
  #isListed({ type, tags }: Entry): boolean {
    const { type: ofType, tag } = this.#only;
    return (ofType === undefined || type === ofType) && (tag === undefined || tags.includes(tag));
  }

  get #key(): string {
    return `feed ${this.#api.url} ${this.#api.user}`;
  }

  // Loading.

  #load(cursor: string | null): Promise<boolean> {
    const loading = this.#loaded(cursor).then((problem) => {
      this.#loading = undefined;
      if (this.#isEnded) return false;
      this.hasFailed = problem !== undefined;
      this.status = problem && this.status !== "ready" ? "failed" : "ready";
      this.emit("change", this);
      if (problem) this.emit("problem", problem);
      return problem === undefined;
    });
    this.#loading = loading;
    if (this.status === "failed") this.status = "loading";
    this.emit("change", this);
    return loading;
  }

  async #loaded(cursor: string | null): Promise<Problem | undefined> {
    const query = new URLSearchParams({ limit: String(PAGE), folder: this.#folder });
    for (const [name, value] of Object.entries(this.#only)) if (value !== undefined) query.set(name, value);
    if (cursor !== null) query.set("cursor", cursor);
    try {
      await this.#api.line;
      const page = await this.#api.call<Page>("GET", `${this.#api.path("feed")}?${query}`);
      if (!this.#isEnded) this.#takePage(page, cursor);
    } catch (thrown) {
      return problemOf(thrown);
    }
    return undefined;
  }

  #takePage(page: Page, cursor: string | null): void {
    const items = this.#asMarked(page.items);
    if (cursor !== null) {
      this.#next = page.next;
      return this.#become(withNextPage(this.items, items), this.#known(page));
    }
    const isAll = page.next === null || this.#next === undefined; // what was kept has no way to older ones
    const list = withFirstPage(this.items, items, isAll);
    if (list.length <= items.length) this.#next = page.next;
    const came = page.items.filter((each) => this.#recent.add(each.id)).reverse();
    this.#become(list, this.#known(page));
    if (this.#isFollowed) for (const each of came) this.emit("entry", each);
    this.#isFollowed = true;
  }

  /** What a page says, but for entries that are just being marked. */
  #asMarked(items: readonly Entry[]): Entry[] {
    return items.flatMap((each) => (this.#isMarking(each.id) ? this.items.filter((own) => own.id === each.id) : [each]));
  }

  // Following.

  #arrive(entry: Entry, counts: Counts): void {
    if (this.#isMarking(entry.id)) return;
    const isNew = this.#recent.add(entry.id);
    const own = isNew ? counted(this.counts, undefined, entry) : this.counts;
    const isListed = this.#isListed(entry);
    this.#become(isListed ? withEntry(this.items, entry) : this.items, this.#known(counts, false, own));
    if (isNew && isListed) this.emit("entry", entry);
  }

  #markedElsewhere(said: MarkedMessage): void {
    const { ids, mark } = said;
    const here = new Set(this.items.map((each) => each.id));
    const items = ids ? this.#changed(mark, (id) => ids.includes(id) && !this.#isMarking(id)) : this.items;
    this.#become(items, this.#known(said, true));
    const isBack = mark === "restored" || mark === "unarchived";
    if (!ids || (isBack && ids.some((id) => !here.has(id)))) void this.refresh();
  }

  /** Load what was missed while there was no connection: marks are not told again. */
  async #catchUp({ unread, unseen }: Counts): Promise<void> {
    await this.#loading;
    if (unread !== this.counts.unread || unseen !== this.counts.unseen) await this.refresh();
  }

  // Marking.

  async #mark(body: Marking, concerns: Concerns, back?: Entry): Promise<boolean> {
    const before = this.items;
    const after = back ? withEntry(before, back) : this.#changed(body.mark, concerns);
    const changes = changesOf(before, after);
    this.#become(after, changes.reduce((sum, [was, is]) => counted(sum, was, is), counted(this.counts, undefined, back)));
    this.#marks.add(concerns);
    // What was seen needs no turn: a click that marks as read and leaves the page must not wait for it.
    const posting = body.mark === "seen" ? this.#post(body) : this.#api.line.then(() => this.#post(body));
    if (body.mark !== "seen") this.#api.line = posting.catch(() => undefined);
    try {
      const counts = await posting;
      this.#marks.delete(concerns);
      if (this.#isEnded) return true;
      const { unread, unseen } = counts;
      if (!this.#marks.size) this.#become(this.items, this.#told?.isMarked ? this.#told.counts : counts);
      this.emit("marked", { type: "marked", ...body, unread, unseen });
      return true;
    } catch (thrown) {
      this.#marks.delete(concerns);
      if (this.#isEnded) return false;
      this.#putBack(changes, back);
      this.emit("problem", problemOf(thrown));
      return false;
    }
  }

  /** Say what was marked, and on which device: that one is not told of it by a push. */
  #post(body: Marking): Promise<Counts> {
    const device = this.#deviceId();
    const said = device === undefined ? body : { ...body, device_id: device };
    return this.#api.call<Counts>("POST", this.#api.path("feed/marks"), said);
  }

  #changed(mark: Mark, concerns: Concerns): Entry[] {
    const at = new Date().toISOString();
    const kept = this.items.filter((each) => !(removes(mark) && concerns(each.id)));
    return kept.map((each) => (concerns(each.id) ? marked(each, mark, at) : each));
  }

  /** Put entries back as they were, unless they were changed again meanwhile. */
  #putBack(changes: readonly Change[], back: Entry | undefined): void {
    let counts = counted(this.counts, back, undefined);
    let items: readonly Entry[] = back ? this.items.filter((each) => each.id !== back.id) : this.items;
    for (const [was, is] of changes) {
      if (items.find((each) => each.id === was.id) !== is) continue;
      items = withEntry(items, was);
      counts = counted(counts, is, was);
    }
    this.#become(items, (!this.#marks.size && this.#told?.counts) || counts);
  }

  #isMarking(id: string): boolean {
    return [...this.#marks].some((concerns) => concerns(id));
  }

  /** The counts to show when the server names some: later, while marks are on their way that it may not know of. */
  #known(counts: Counts, isMarked = false, own: Counts = this.counts): Counts {
    if (!this.#marks.size) return counts;
    this.#told = { counts, isMarked: isMarked || !!this.#told?.isMarked };
    return own;
  }

  // Telling and keeping.

  #become(items: readonly Entry[], { unread, unseen }: Counts): void {
    this.items = items;
    this.counts = { unread, unseen };
    if (!this.#marks.size) this.#told = undefined;
    this.emit("change", this);
    if (this.#isWhole && !this.#isEnded) this.#keeping ??= this.#keep();
  }

  /** Write what the next start shows; what changes while it is written is in it, too. */
  async #keep(): Promise<void> {
    await Promise.resolve();
    this.#keeping = undefined;
    const kept: Kept = { items: this.items.slice(0, PAGE), ...this.counts, recent: this.#recent.list() };
    await this.#storage.set(this.#key, kept);
  }
}

function changesOf(before: readonly Entry[], after: readonly Entry[]): Change[] {
  const by = new Map(after.map((each) => [each.id, each]));
  return before.filter((each) => by.get(each.id) !== each).map((each) => [each, by.get(each.id)]);
}
