/** Waypost in React: a session, what is in the feed, and the inbox. */

import type { Counts, Entry, Feed, Mark, Options, Problem } from "@waypost/client";
import { Waypost } from "@waypost/client";
import type { WaypostInbox } from "@waypost/client/inbox";
import "@waypost/client/inbox";
import { createElement, type HTMLAttributes, type ReactElement, type ReactNode, useEffect, useMemo, useRef, useSyncExternalStore } from "react";

/** A session of the user, which begins when the component is mounted and ends with it. */
export function useWaypost(options: Options): Waypost {
  const latest = useRef(options);
  latest.current = options;
  const { url, user } = options;
  const client = useMemo(
    () => new Waypost({ ...latest.current, url, user, token: (isRefused) => latest.current.token(isRefused) }),
    [url, user],
  );
  useEffect(() => {
    void client.start();
    return () => client.stop();
  }, [client]);
  return client;
}

/** What is in the feed, and what can be done with it. */
export interface FeedView {
  items: readonly Entry[];
  counts: Counts;
  status: Feed["status"];
  isLoading: boolean;
  hasMore: boolean;
  more(): Promise<boolean>;
  mark(mark: Mark, ids: readonly string[]): Promise<boolean>;
  markAll(mark: Mark): Promise<boolean>;
}

/** The feed of a session; the component is drawn anew when it changes. */
export function useFeed(client: Waypost): FeedView {
  const { feed } = client;
  const versions = useMemo(() => ({ now: 0 }), [feed]);
  useSyncExternalStore(
    (changed) => feed.on("change", () => ((versions.now += 1), changed())),
    () => versions.now,
    () => 0,
  );
  const { items, counts, status, isLoading, hasMore } = feed;
  return {
    ...{ items, counts, status, isLoading, hasMore },
    more: () => feed.more(),
    mark: (mark, ids) => feed.mark(mark, ids),
    markAll: (mark) => feed.markAll(mark),
  };
}

/** What is unread and unseen. */
export function useCounts(client: Waypost): Counts {
  return useFeed(client).counts;
}

/** Call `listener` when something does not work; the `message` of a problem can be shown. */
export function useProblems(client: Waypost, listener: (problem: Problem) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => client.on("problem", (problem) => latest.current(problem)), [client]);
}

/** How the inbox looks, and what it does with a click. */
export interface InboxProps extends HTMLAttributes<HTMLElement> {
  client: Waypost;
  theme?: "light" | "dark";
  align?: "start" | "end";
  /** The pane behind the settings button. */
  preferences?: ReactNode;
  /** An entry was clicked; return false to keep the browser from following its link. */
  onOpenEntry?: (entry: Entry, link: string | undefined) => boolean | void;
}

/** The bell with its list. */
export function Inbox({ client, preferences, onOpenEntry, ...props }: InboxProps): ReactElement {
  const element = useRef<WaypostInbox>(null);
  const open = useRef(onOpenEntry);
  open.current = onOpenEntry;
  useEffect(() => {
    const inbox = element.current!;
    inbox.client = client;
    const heed = (event: Event) => {
      const { entry, link } = (event as CustomEvent<{ entry: Entry; link: string | undefined }>).detail;
      if (open.current?.(entry, link) === false) event.preventDefault();
    };
    inbox.addEventListener("waypost-open", heed);
    return () => inbox.removeEventListener("waypost-open", heed);
  }, [client]);
  const pane = preferences === undefined ? undefined : createElement("div", { slot: "preferences" }, preferences);
  return createElement("waypost-inbox", { ...props, ref: element }, pane);
}
