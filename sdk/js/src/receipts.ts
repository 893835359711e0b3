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

/** A receipt that waits: `token` is the last part of a signed link. */
export interface WaitingReceipt {
  event: ReceiptEvent;
  notification_id: string;
  token?: string;
  action?: string;
}

/** Keep a receipt for a page. */
export async function keepReceipt(storage: Storage, receipt: WaitingReceipt): Promise<void> {
  const waiting = (await storage.get<WaitingReceipt[]>(RECEIPTS)) ?? [];
  await storage.set(RECEIPTS, [...waiting, receipt].slice(-LIMIT));
}

/** Send what waits; what the server cannot take now waits on. */
export async function sendReceipts(api: Api, storage: Storage): Promise<void> {
  const waiting = await storage.get<WaitingReceipt[]>(RECEIPTS);
  const registered = await storage.get<Registered>(REGISTERED);
  if (!waiting?.length) return;
  const receipts = waiting.flatMap(({ notification_id, token, ...said }): object[] => {
    if (token) return [{ ...said, token }];
    return registered ? [{ ...said, notification_id, device_id: registered.id }] : [];
  });
  try {
    if (receipts.length) await api.call("POST", "/v1/receipts", { receipts });
  } catch (thrown) {
    if (problemOf(thrown).isPassing) return;
  }
  await storage.delete(RECEIPTS);
}
