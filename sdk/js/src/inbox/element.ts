/** `<waypost-inbox>`: a bell with a count, and the list of what came. */

import { type Options, Waypost } from "../client.js";
import type { Feed, Folder } from "../feed.js";
import type { Entry, Mark } from "../messages.js";
import type { Problem } from "../problem.js";
import { drawing, h, setProps } from "./dom.js";
import { Choices } from "./pane.js";
import { type RowHandler, rowOf } from "./row.js";
import { STYLE } from "./style.js";
import { isRightToLeft, type Texts, textsOf } from "./texts.js";

const BELL = ["M6 9a6 6 0 0 1 12 0c0 6 2.5 7.5 2.5 7.5h-17S6 15 6 9", "M10 20a2.2 2.2 0 0 0 4 0"];
const CROSS = ["M6 6l12 12M18 6L6 18"];
const GEAR = ["M4 7h9M17 7h3M4 17h3M11 17h9", "M15 5v4M9 15v4"];
const UNDO_MS = 8_000;
const MOST_SHOWN = 99;

/** The inbox. Give it `client`, or `url`, `user` and `token`. */
export class WaypostInbox extends HTMLElement {
  static readonly observedAttributes = ["lang", "url", "user"];
  #client: Waypost | undefined;
  #isOwn = false;
  #token: Options["token"] | undefined;
  #view: Feed | undefined;
  #stops: (() => void)[] = [];
  #texts: Texts = textsOf("en");
  #lang = "en";
  #rows = new Map<string, { entry: Entry; row: HTMLLIElement }>();
  #removed: Entry | undefined;
  #undoTimer: ReturnType<typeof setTimeout> | undefined;
  #end = new IntersectionObserver((seen) => {
    if (seen.at(-1)?.isIntersecting) this.#more();
  });
  // The parts that stay.
  #bell = h("button", { class: "bell", type: "button", "aria-haspopup": "dialog", "aria-expanded": "false" });
  #badge = h("span", { class: "badge", "aria-hidden": "true" });
  #panel = h("div", { class: "panel", role: "dialog", hidden: true });
  #title = h("h2", { class: "title", tabindex: "-1" });
  #gear = h("button", { class: "preferences", type: "button", "aria-expanded": "false" }, drawing(18, ...GEAR));
  #close = h("button", { class: "close", type: "button" }, drawing(18, ...CROSS));
  #showAll = h("button", { class: "filter", type: "button" });
  #showUnread = h("button", { class: "filter", type: "button" });
  #markAll = h("button", { class: "all", type: "button" });
  #problem = h("div", { class: "problem", role: "alert", hidden: true });
  #list = h("ul", { class: "list", role: "list" });
  #empty = h("p", { class: "note", hidden: true });
  #spin = h("div", { class: "spin", role: "status" });
  #sentinel = h("div", { class: "end" });
  #toast = h("div", { class: "toast", role: "status", hidden: true });
  #says = h("div", { class: "quiet", "aria-live": "polite" });
  #choices = new Choices((problem) => this.#showProblem(problem), () => this.#hideProblem());
  #slot = h("slot", { name: "preferences" }, this.#choices.root);
  #pane = h("div", { class: "pane", hidden: true }, this.#slot);
  #scroll = h("div", { class: "scroll" }, this.#list, this.#empty, this.#spin, this.#sentinel);
  #tools = h("div", { class: "tools" }, this.#showAll, this.#showUnread, this.#markAll);

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    this.#bell.append(drawing(24, ...BELL), this.#badge);
    const header = h("header", { class: "header" }, this.#title, this.#gear, this.#close);
    this.#panel.append(header, this.#tools, this.#problem, this.#pane, this.#scroll, this.#toast);
    root.append(this.#bell, this.#panel, this.#says);
    this.#listen();
  }

  /** The session; set one that the page has, or leave it to the inbox to begin its own. */
  get client(): Waypost | undefined {
    return this.#client;
  }

  set client(client: Waypost | undefined) {
    this.#leave();
    this.#client = client;
    if (this.isConnected) this.#begin();
  }

  /** What gives the user's token. */
  get token(): Options["token"] | undefined {
    return this.#token;
  }

  set token(token: Options["token"] | undefined) {
    this.#token = token;
    if (this.isConnected) this.#begin();
  }

  connectedCallback(): void {
    for (const name of ["client", "token"] as const) this.#upgrade(name);
    this.#togglePane(false);
    document.addEventListener("click", this.#outside);
    this.#translate();
    this.#begin();
  }

  disconnectedCallback(): void {
    document.removeEventListener("click", this.#outside);
    this.#leave();
  }

  attributeChangedCallback(name: string): void {
    if (!this.isConnected) return;
    if (name === "lang") return this.#translate();
    if (this.#isOwn) this.#leave();
    this.#begin();
  }

  /** Show the list, and say that it was seen. */
  open(): void {
    this.#setOpen(true);
    this.#title.focus();
    if (this.#client?.feed.counts.unseen) void this.#client.feed.markAll("seen");
  }

  /** Hide it. */
  close(): void {
    const isInside = this.shadowRoot!.activeElement !== null;
    this.#setOpen(false);
    if (isInside) this.#bell.focus();
  }

  #setOpen(isOpen: boolean): void {
    const room = window.innerHeight - this.#bell.getBoundingClientRect().bottom - 24;
    this.#panel.style.setProperty("--_room", `${room}px`);
    this.#panel.hidden = !isOpen;
    this.#bell.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.#end.observe(this.#sentinel);
    else this.#end.disconnect();
  }

  // The session.

  /** A page may have set a property before the element was known. */
  #upgrade(name: "client" | "token"): void {
    if (!Object.hasOwn(this, name)) return;
    const value = this[name];
    delete this[name];
    Object.assign(this, { [name]: value });
  }

  #begin(): void {
    const { url, user } = { url: this.getAttribute("url"), user: this.getAttribute("user") };
    if (!this.#client && url && user && this.#token) {
      this.#client = new Waypost({ url, user, token: this.#token });
      this.#isOwn = true;
    }
    if (!this.#client || this.#view) return;
    this.#stops = [
      this.#client.on("counts", () => this.#showCounts()),
      this.#client.on("problem", (problem) => this.#showProblem(problem)),
      this.#client.on("state", (state) => state === "live" && this.#hideProblem()),
      this.#client.on("entry", (entry) => this.#announce(entry)),
    ];
    this.#show("inbox");
    this.#showCounts();
    if (this.#isOwn) void this.#client.start();
  }

  #leave(): void {
    this.#stops.forEach((stop) => stop());
    this.#stops = [];
    this.#drop();
    if (this.#isOwn) this.#client?.stop();
    if (this.#isOwn) this.#client = undefined;
    this.#isOwn = false;
  }

  #drop(): void {
    if (this.#view && this.#view !== this.#client?.feed) this.#client?.drop(this.#view);
    this.#view = undefined;
  }

  /** Show all, or what is unread. */
  #show(folder: Folder): void {
    const client = this.#client!;
    this.#drop();
    const view = folder === "inbox" ? client.feed : client.view(folder);
    this.#view = view;
    this.#stops.push(view.on("change", () => this.#view === view && this.#render()));
    if (folder === "unread") void view.start();
    setProps(this.#showAll, { "aria-pressed": String(folder === "inbox") });
    setProps(this.#showUnread, { "aria-pressed": String(folder === "unread") });
    this.#scroll.scrollTop = 0;
    this.#render();
  }

  #more(): void {
    const view = this.#view;
    if (view?.hasMore && !view.isLoading) void view.more();
  }

  /** Have the observer say where the end of the list is now. */
  #observeAgain(): void {
    this.#end.unobserve(this.#sentinel);
    if (!this.#panel.hidden) this.#end.observe(this.#sentinel);
  }

  // What is shown.

  #render(): void {
    const view = this.#view!;
    const rows = view.items.map((entry) => this.#row(entry));
    const gone = new Set(this.#rows.keys());
    view.items.forEach((each) => gone.delete(each.id));
    gone.forEach((id) => this.#rows.delete(id));
    this.#place(rows);
    const isUnread = view !== this.#client?.feed;
    this.#spin.hidden = !view.isLoading && view.status !== "loading";
    this.#empty.hidden = rows.length > 0 || view.status !== "ready";
    this.#empty.replaceChildren(drawing(40, ...BELL), isUnread ? this.#texts.emptyUnread : this.#texts.empty);
    if (view.isLoading || view.hasFailed) return;
    this.#observeAgain();
  }

  #row(entry: Entry): HTMLLIElement {
    const known = this.#rows.get(entry.id);
    if (known?.entry === entry) return known.row;
    const row = rowOf(entry, this.#texts, this.#lang, this.#handler);
    this.#rows.set(entry.id, { entry, row });
    const focused = known && this.#focusedIn(known.row);
    known?.row.replaceWith(row);
    if (focused) row.querySelector<HTMLElement>(`.${focused}`)?.focus();
    return row;
  }

  /** Put the rows in order, moving no more than has to be moved: a moved row loses the focus. */
  #place(rows: HTMLLIElement[]): void {
    const wanted = new Set(rows);
    for (const child of [...this.#list.children]) if (!wanted.has(child as HTMLLIElement)) child.remove();
    rows.forEach((row, n) => {
      if (this.#list.children[n] !== row) this.#list.insertBefore(row, this.#list.children[n] ?? null);
    });
  }

  #focusedIn(row: HTMLElement): string | undefined {
    const active = this.shadowRoot!.activeElement;
    return active && row.contains(active) ? active.classList[0] : undefined;
  }

  #showCounts(): void {
    const unread = this.#client?.feed.counts.unread ?? 0;
    this.#badge.hidden = unread === 0;
    this.#badge.textContent = unread > MOST_SHOWN ? `${MOST_SHOWN}+` : String(unread);
    const words = unread ? `, ${this.#texts.unreadCount.replace("{n}", String(unread))}` : "";
    this.#bell.setAttribute("aria-label", this.#texts.title + words);
    this.#markAll.disabled = unread === 0;
  }

  #showProblem(problem: Problem): void {
    const retry = h("button", { class: "retry", type: "button", hidden: !this.#view?.hasFailed }, this.#texts.retry);
    retry.onclick = () => void this.#view?.refresh();
    this.#problem.replaceChildren(h("span", {}, this.#texts[problem.kind]), retry);
    this.#problem.hidden = false;
  }

  /** Say nothing of what did not work once something does. */
  #hideProblem(): void {
    this.#problem.hidden = true;
  }

  #announce(entry: Entry): void {
    this.#says.textContent = `${this.#texts.arrived}: ${entry.title ?? entry.body ?? ""}`;
  }

  #translate(): void {
    const lang = this.closest("[lang]")?.getAttribute("lang") || document.documentElement.lang || navigator.language;
    const texts = textsOf(lang);
    this.#lang = lang;
    this.#texts = texts;
    const dir = isRightToLeft(lang) && !this.closest("[dir]") ? "rtl" : undefined;
    setProps(this.#panel, { lang, dir, "aria-label": texts.title });
    const named: [HTMLElement, string][] = [
      [this.#close, texts.close],
      [this.#gear, texts.preferences],
    ];
    for (const [button, words] of named) setProps(button, { title: words, "aria-label": words });
    this.#title.textContent = texts.title;
    this.#showAll.textContent = texts.all;
    this.#showUnread.textContent = texts.unread;
    this.#markAll.textContent = texts.markAll;
    setProps(this.#spin, { "aria-label": texts.loading });
    this.#rows.clear();
    this.#showCounts();
    if (this.#view) this.#render();
  }

  // What the user does.

  #listen(): void {
    this.#bell.onclick = () => (this.#panel.hidden ? this.open() : this.close());
    this.#close.onclick = () => this.close();
    this.#gear.onclick = () => this.#togglePane();
    this.#slot.onslotchange = () => this.#togglePane(false);
    this.#togglePane(false);
    this.#showAll.onclick = () => this.#show("inbox");
    this.#showUnread.onclick = () => this.#show("unread");
    this.#markAll.onclick = () => void this.#view?.markAll("read");
    this.#panel.onkeydown = (event) => this.#key(event);
    this.#toast.onfocus = this.#toast.onmouseenter = () => clearTimeout(this.#undoTimer);
  }

  #togglePane(isOpen = this.#pane.hidden): void {
    const isTheirs = this.#slot.assignedNodes().length > 0;
    this.#gear.hidden = !isTheirs && !this.hasAttribute("preferences");
    if (isOpen && !isTheirs && this.#client) void this.#choices.show(this.#client, this.#texts);
    this.#pane.hidden = !isOpen;
    this.#scroll.hidden = this.#tools.hidden = isOpen;
    this.#gear.setAttribute("aria-expanded", String(isOpen));
  }

  #key(event: KeyboardEvent): void {
    if (event.key === "Escape") return this.close();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const mains = [...this.#list.querySelectorAll<HTMLElement>(".main")];
    const at = mains.findIndex((each) => each.parentElement!.contains(this.shadowRoot!.activeElement));
    mains[Math.min(mains.length - 1, Math.max(0, at + step))]?.focus();
    event.preventDefault();
  }

  #outside = (event: Event): void => {
    if (!this.#panel.hidden && !event.composedPath().includes(this)) this.#setOpen(false);
  };

  #handler: RowHandler = {
    open: (entry, link, event) => {
      if (!entry.read_at) this.#mark("read", entry);
      const detail = { entry, link };
      const asked = new CustomEvent("waypost-open", { detail, cancelable: true, bubbles: true, composed: true });
      if (!this.dispatchEvent(asked)) event.preventDefault();
    },
    toggle: (entry) => this.#mark(entry.read_at ? "unread" : "read", entry),
    remove: (entry) => void this.#remove(entry),
  };

  #mark(mark: Mark, entry: Entry): void {
    this.#hideProblem();
    void this.#view?.mark(mark, [entry.id]);
  }

  async #remove(entry: Entry): Promise<void> {
    const view = this.#view!;
    this.#hideProblem();
    const place = view.items.indexOf(entry);
    const removing = view.mark("deleted", [entry.id]);
    const next = this.#list.querySelectorAll<HTMLElement>(".main")[place] ?? this.#title;
    next.focus();
    this.#offerUndo(entry);
    if (!(await removing)) this.#endUndo(entry);
  }

  #offerUndo(entry: Entry): void {
    clearTimeout(this.#undoTimer);
    this.#removed = entry;
    const undo = h("button", { class: "undo", type: "button" }, this.#texts.undo);
    undo.onclick = () => {
      this.#endUndo(entry);
      void this.#view?.restore(entry);
    };
    this.#toast.replaceChildren(h("span", {}, this.#texts.removed), undo);
    this.#toast.hidden = false;
    this.#undoTimer = setTimeout(() => this.#endUndo(entry), UNDO_MS);
  }

  #endUndo(entry: Entry): void {
    if (this.#removed !== entry) return;
    clearTimeout(this.#undoTimer);
    this.#toast.hidden = true;
    this.#removed = undefined;
  }
}
