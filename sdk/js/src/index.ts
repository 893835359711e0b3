/** Waypost in a web page: the live feed of a user, and web push. */

export { Api, type Session, type TokenProvider } from "./api.js";
export { type Events, type Options, Waypost } from "./client.js";
export { Feed, type FeedEvents, type FeedStatus, type Folder, type Only } from "./feed.js";
export type { LiveState } from "./live.js";
export type { Action, Click, Counts, Entry, LiveMessage, Mark } from "./messages.js";
export type { PreferenceChange, Preferences, QuietHours, TypePreference } from "./preferences.js";
export { Problem, type ProblemKind } from "./problem.js";
export { Push, type PushOptions } from "./push.js";
export { BrowserStorage, MemoryStorage, type Storage } from "./storage.js";
export type { DeviceToken } from "./token.js";
