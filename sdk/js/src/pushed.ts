/** What comes in a push. */

/** A push as Waypost sends it. */
export interface Pushed {
  waypost_id?: string;
  kind?: string;
  title?: string;
  subtitle?: string;
  body?: string;
  image?: string;
  icon?: string;
  link?: string;
  actions?: { action: string; title: string; icon?: string; link?: string }[];
  badge?: number;
  tag?: string;
  data?: Record<string, unknown>;
}

interface Data {
  json(): unknown;
  text(): string;
}

/** Read a push; of a declarative one, what the browser would have shown by itself. */
export function pushedOf(data: Data | null): Pushed {
  let said: Record<string, unknown>;
  try {
    said = (data?.json() ?? {}) as Record<string, unknown>;
  } catch {
    return { title: data?.text() ?? "" };
  }
  const { notification, app_badge } = said as { notification?: Pushed & { data?: Pushed }; app_badge?: number };
  if (said["web_push"] !== 8030 || !notification) return said as Pushed;
  const { navigate, data: own = {}, ...shown } = notification as Pushed & { navigate?: string; data?: Pushed };
  return {
    ...own,
    ...shown,
    data: (own as Pushed).data ?? {},
    ...optional("link", navigate),
    ...optional("badge", app_badge),
    waypost_id: (said["waypost_id"] ?? (own as Pushed).waypost_id) as string,
  };
}

/** A property, where there is a value for it. */
export function optional<Name extends string, Value>(name: Name, value: Value | undefined): { [key in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [key in Name]?: Value };
}
