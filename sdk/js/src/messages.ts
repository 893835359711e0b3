/** What Waypost says: entries of the feed, and the messages of a live connection. */

/** A button under a notification. */
export interface Action {
  id: string;
  title: string;
  link?: string | null;
  icon?: string | null;
}

/** What an app shows of a notification, and what its user did with it. Times are ISO 8601 in UTC. */
export interface Entry {
  id: string;
  type: string | null;
  urgency: "critical" | "high" | "normal" | "low";
  title: string | null;
  subtitle: string | null;
  body: string | null;
  data: Record<string, unknown>;
  image: string | null;
  icon: string | null;
  link: string | null;
  actions: Action[];
  category: string | null;
  thread: string | null;
  tags: string[];
  shown_at: string;
  seen_at: string | null;
  read_at: string | null;
  archived_at: string | null;
}

/** How many entries of the inbox are not read, and not seen. */
export interface Counts {
  unread: number;
  unseen: number;
}

/** A page of the feed, newest first. */
export interface Page extends Counts {
  items: Entry[];
  next: string | null;
}

/** What a user does with entries. */
export type Mark = "seen" | "read" | "unread" | "archived" | "unarchived" | "deleted" | "restored";

/** The user marked entries, here or on another device; no ids: too many to name. */
export interface MarkedMessage extends Counts {
  type: "marked";
  mark: Mark;
  ids?: readonly string[];
}

/** What a live connection says. */
export type LiveMessage =
  | ({ type: "hello"; cursor: string } & Counts)
  | ({ type: "entry"; cursor: string; entry: Entry } & Counts)
  | MarkedMessage
  | { type: "fetch"; cursor: string }
  | { type: "reconnect"; within_s: number };

/** A click on a shown notification, as the service worker hands it to an open page. */
export interface Click {
  id: string;
  link: string | null;
  action: string | null;
  data: Record<string, unknown>;
}
