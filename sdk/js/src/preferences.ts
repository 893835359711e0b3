/** What a user wants to be sent, as Waypost tells it. */

/** Hours of each day in the user's time zone, such as `22:00`; from and until the same is none. */
export interface QuietHours {
  start: string;
  end: string;
}

/** A type of message, and whether the user wants it. */
export interface TypePreference {
  name: string;
  title: string;
  enabled: boolean;
  /** Whether it cannot be turned off. */
  critical: boolean;
  channels: Record<string, boolean>;
}

/** A user's preferences as they count now. */
export interface Preferences {
  /** False turns everything off. */
  enabled: boolean;
  channels: Record<string, boolean>;
  types: TypePreference[];
  quiet_hours: QuietHours | null;
  frequency_limit: number | null;
  time_zone: string;
}

/** A change of them: what is left out stays, null is back to what the app says. */
export interface PreferenceChange {
  enabled?: boolean;
  channels?: Record<string, boolean | null>;
  types?: Record<string, { enabled?: boolean | null; channels?: Record<string, boolean | null> } | null>;
  quiet_hours?: QuietHours | null;
  frequency_limit?: number | null;
  time_zone?: string | null;
}
