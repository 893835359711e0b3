/** One entry of the list. */

import type { Entry } from "../messages.js";
import { drawing, h, safeUrl } from "./dom.js";
import type { Texts } from "./texts.js";

const CHECK = "M5 12.5l4.5 4.5L19 7.5";
const DOT = "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8";
const BIN = "M4 7h16M10 11v6M14 11v6M6 7l1 13h10l1-13M9 7V4h6v3";

/** What a row asks for. */
export interface RowHandler {
  open(entry: Entry, link: string | undefined, event: MouseEvent): void;
  toggle(entry: Entry): void;
  remove(entry: Entry): void;
}

/** Make the row of an entry. */
export function rowOf(entry: Entry, texts: Texts, lang: string, handler: RowHandler): HTMLLIElement {
  const isUnread = entry.read_at === null;
  const row = h("li", { class: isUnread ? "entry unread" : "entry" }, mainOf(entry, texts, lang, handler));
  const toggle = h("button", { class: "toggle", type: "button" }, drawing(18, isUnread ? CHECK : DOT));
  label(toggle, isUnread ? texts.markRead : texts.markUnread, entry);
  toggle.onclick = () => handler.toggle(entry);
  const remove = h("button", { class: "delete", type: "button" }, drawing(18, BIN));
  label(remove, texts.remove, entry);
  remove.onclick = () => handler.remove(entry);
  row.append(h("div", { class: "side" }, toggle, remove), ...actionsOf(entry, handler));
  return row;
}

function mainOf(entry: Entry, texts: Texts, lang: string, handler: RowHandler): HTMLElement {
  const link = safeUrl(entry.link);
  const main = link ? h("a", { class: "main", href: link }) : h("button", { class: "main", type: "button" });
  const icon = safeUrl(entry.icon);
  const image = safeUrl(entry.image);
  main.append(
    h("span", { class: "dot" }, entry.read_at === null && h("span", { class: "quiet" }, texts.unread)),
    icon ? h("img", { class: "icon", src: icon, alt: "", loading: "lazy" }) : h("span"),
    h(
      "span",
      { class: "words" },
      h("span", { class: "name", dir: "auto" }, entry.title ?? entry.body ?? ""),
      !!entry.subtitle && h("span", { class: "subtitle", dir: "auto" }, entry.subtitle),
      !!(entry.title && entry.body) && h("span", { class: "body", dir: "auto" }, entry.body),
      image ? h("img", { class: "image", src: image, alt: "", loading: "lazy" }) : undefined,
      timeOf(entry.shown_at, lang),
    ),
  );
  main.onclick = (event: MouseEvent) => handler.open(entry, link, event);
  return main;
}

function actionsOf(entry: Entry, handler: RowHandler): HTMLElement[] {
  const links = entry.actions.flatMap(({ title, link }) => {
    const url = safeUrl(link ?? entry.link);
    if (!url) return [];
    const action = h("a", { class: "action", href: url }, title);
    action.onclick = (event) => handler.open(entry, url, event);
    return [action];
  });
  return links.length ? [h("div", { class: "actions" }, ...links)] : [];
}

function label(button: HTMLElement, words: string, entry: Entry): void {
  button.title = words;
  button.setAttribute("aria-label", `${words}: ${entry.title ?? entry.body ?? ""}`);
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

function timeOf(at: string, lang: string): HTMLElement {
  const date = new Date(at);
  const ageS = (Date.now() - date.getTime()) / 1000;
  const [unit, seconds] = UNITS.find(([, each]) => ageS >= each) ?? ["second", 1];
  const isOld = ageS > 7 * 86_400;
  const ago = unit === "second" ? 0 : -Math.floor(ageS / seconds);
  const words = isOld
    ? date.toLocaleDateString(lang, { dateStyle: "medium" })
    : new Intl.RelativeTimeFormat(lang, { numeric: "auto", style: "long" }).format(ago, unit);
  return h("time", { class: "time", datetime: at, title: date.toLocaleString(lang) }, words);
}
