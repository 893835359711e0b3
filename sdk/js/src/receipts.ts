/** Receipts that the service worker could not hand in by itself: a page does it with the user's token. */

import type { Api } from "./api.js";
import { problemOf } from "./problem.js";
import type { Storage } from "./storage.js";
import { REGISTERED, type Registered } from "./token.js";

/** The key of what waits. */
export const RECEIPTS = "receipts";
const LIMIT = 200;

/** What happened to a shown notification. */
export type ReceiptEvent = "displayed" | "opened" | "dismissed" | "action";

/** A receipt that waits: `token` is the last part of a signed link, `key` tells it from others. */
export interface WaitingReceipt {
  key: string;
  event: ReceiptEvent;
  notification_id: string;
  token?: string;
  action?: string;
}

/** Keep a receipt for a page. */
export async function keepReceipt(storage: Storage, receipt: Omit<WaitingReceipt, "key">): Promise<void> {
  const kept: WaitingReceipt = { ...receipt, key: String(Math.random()) };
  await storage.update<WaitingReceipt[]>(RECEIPTS, (waiting = []) => [...waiting, kept].slice(-LIMIT));
}

/** Send what waits; what the server cannot take yet waits on, as does what is added meanwhile. */
export async function sendReceipts(api: Api, storage: Storage): Promise<void> {
  const registered = await storage.get<Registered | null>(REGISTERED);
  const waiting = (await storage.get<WaitingReceipt[]>(RECEIPTS)) ?? [];
  const going = waiting.filter(({ token }) => token || registered);
  if (!going.length) return;
  const receipts = going.map(({ key: _, notification_id, token, ...said }) =>
    token ? { ...said, token } : { ...said, notification_id, device_id: registered!.id },
  );
  let done = going;
  try {
    const { results } = await api.call<Answer>("POST", "/v1/receipts", { receipts });
    done = going.filter((_, n) => results[n]?.status !== "pending");
  } catch (thrown) {
    if (problemOf(thrown).isPassing) return;
  }
  const keys = new Set(done.map(({ key }) => key));
  await storage.update<WaitingReceipt[]>(RECEIPTS, (all = []) => all.filter(({ key }) => !keys.has(key)));
}

interface Answer {
  results: { status: string | null }[];
}
