/** The token of this browser, as Waypost is told of it and as it is kept. */

/** A token that the server does not have yet. */
export const WAITING = "token";
/** The token that it has, and the id it gave it; null once it was given back. */
export const REGISTERED = "registered";

/** The address of a device at its push service. */
export interface DeviceToken {
  platform: "web" | "ios" | "android";
  token: string;
  keys?: { p256dh: string; auth: string };
  device_info?: { model?: string; os_version?: string; app_version?: string };
}

/** What is remembered of the registration. */
export interface Registered {
  id: string;
  token: string;
  /** The public VAPID key that the browser subscribed with. */
  key?: string | undefined;
}

/** Build what Waypost is told of a browser's subscription. */
export function tokenOf(subscription: PushSubscription, appVersion?: string): DeviceToken {
  const { endpoint = "", keys } = subscription.toJSON();
  const { p256dh = "", auth = "" } = keys ?? {};
  return { platform: "web", token: endpoint, keys: { p256dh, auth }, device_info: deviceInfo(appVersion) };
}

function deviceInfo(appVersion: string | undefined): NonNullable<DeviceToken["device_info"]> {
  const agent = navigator.userAgent;
  const model = /(Firefox|Edg|OPR|Chrome|Version)\/\d+/.exec(agent)?.[0] ?? "browser";
  const system = /\(([^;)]+)(?:; ([^;)]+))?/.exec(agent);
  const info = { model, os_version: (system?.[2] ?? system?.[1] ?? "unknown").slice(0, 128) };
  return appVersion === undefined ? info : { ...info, app_version: appVersion };
}
