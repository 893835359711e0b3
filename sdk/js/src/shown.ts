/** What is on the screen: notifications that the service worker showed, and the number on the app's icon. */

import type { Pushed } from "./pushed.js";

interface Registration {
  getNotifications(): Promise<Notification[]>;
}

/** Take away the notifications of these ids, and set the number. Others stay, whatever it is: not all are in the feed. */
export async function takeAway(registration: Registration, ids: readonly string[], badge?: number): Promise<void> {
  for (const shown of await registration.getNotifications()) {
    const id = (shown.data as Pushed | null)?.waypost_id;
    if (id !== undefined && ids.includes(id)) shown.close();
  }
  await setBadge(badge);
}

/** Show a number on the app's icon, where the system has such a thing. */
export async function setBadge(badge: number | undefined): Promise<void> {
  if (badge === undefined || !("setAppBadge" in navigator)) return;
  await (badge ? navigator.setAppBadge(badge) : navigator.clearAppBadge()).catch(() => undefined);
}
