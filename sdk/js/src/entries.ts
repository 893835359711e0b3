/** A list of entries, newest first, and what marks do to it. All of it is pure. */

import type { Counts, Entry, Mark } from "./messages.js";

/** Put an entry where its time says, in place of the one with its id. */
export function withEntry(items: readonly Entry[], entry: Entry): Entry[] {
  const known = items.findIndex((each) => each.id === entry.id);
  if (known >= 0) return items.map((each, n) => (n === known ? entry : each));
  const place = items.findIndex((each) => isNewer(entry, each));
  return place < 0 ? [...items, entry] : [...items.slice(0, place), entry, ...items.slice(place)];
}

/** Lay the first page over a list: what the page does not have, within its reach, is gone. */
export function withFirstPage(items: readonly Entry[], page: readonly Entry[], isAll: boolean): Entry[] {
  const last = page.at(-1);
  if (isAll || last === undefined) return [...page];
  const met = items.findIndex((each) => each.id === last.id);
  return met < 0 ? [...page] : [...page, ...items.slice(met + 1)];
}

/** Append a page, without what is there already. */
export function withNextPage(items: readonly Entry[], page: readonly Entry[]): Entry[] {
  const known = new Set(items.map((each) => each.id));
  return [...items, ...page.filter((each) => !known.has(each.id))];
}

/** Whether a mark takes an entry out of the inbox. */
export function removes(mark: Mark): boolean {
  return mark === "deleted" || mark === "archived";
}

/** The entry as it is after a mark; itself where nothing changes. */
export function marked(entry: Entry, mark: Mark, at: string): Entry {
  const seen = entry.seen_at ?? at;
  const read = entry.read_at ?? at;
  if (mark === "seen") return entry.seen_at ? entry : { ...entry, seen_at: at };
  if (mark === "read") return entry.read_at ? entry : { ...entry, seen_at: seen, read_at: at };
  if (mark === "unread") return entry.read_at ? { ...entry, read_at: null } : entry;
  if (mark === "archived") return { ...entry, seen_at: seen, read_at: read, archived_at: at };
  if (mark === "unarchived") return { ...entry, archived_at: null };
  return entry;
}

/** The counts when `before` turns into `after` (nothing: taken out, or put in). */
export function counted(counts: Counts, before: Entry | undefined, after: Entry | undefined): Counts {
  const change = (at: "read_at" | "seen_at") => isNew(after, at) - isNew(before, at);
  return {
    unread: Math.max(0, counts.unread + change("read_at")),
    unseen: Math.max(0, counts.unseen + change("seen_at")),
  };
}

function isNew(entry: Entry | undefined, at: "read_at" | "seen_at"): number {
  return entry && entry[at] === null ? 1 : 0;
}

function isNewer(one: Entry, other: Entry): boolean {
  return one.shown_at === other.shown_at ? one.id > other.id : one.shown_at > other.shown_at;
}
