// The page's service worker: shows what is pushed, opens what is tapped, takes away what was read elsewhere.
const tell = (what, more = {}) => fetch("/told", { method: "POST", body: JSON.stringify({ what, ...more }) });

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => event.waitUntil(pushed(event.data.json())));

async function pushed(said) {
  const reads = said.data?.waypost?.reads;
  if (reads) {
    await takeAway(reads);
    return tell("read", { reads, badge: said.data.waypost.badge, left: await titles() });
  }
  const { title, body, link, badge, waypost_id: id } = said;
  await self.registration.showNotification(title, { body, tag: id, data: { id, link } });
  return tell("shown", { id, badge, titles: await titles() });
}

// Closing takes effect a moment later: what is told is what can be seen.
async function takeAway(ids) {
  for (;;) {
    const shown = (await self.registration.getNotifications()).filter((each) => ids.includes(each.data.id));
    if (!shown.length) return;
    shown.forEach((each) => each.close());
    await new Promise((come) => setTimeout(come, 50));
  }
}

async function titles() {
  return (await self.registration.getNotifications()).map((each) => each.title);
}

self.addEventListener("notificationclick", (event) => {
  const done = tapped(event.notification);
  if (event.isTrusted) event.waitUntil(done);
});

async function tapped(notification) {
  const { id, link } = notification.data;
  notification.close();
  const [page] = await self.clients.matchAll({ type: "window" });
  await page.navigate(link);
  await tell("tapped", { id });
}

// Nobody can click in a browser without a screen: the same event, from the page.
self.addEventListener("message", (event) => event.waitUntil(tap(event.data.tap)));

async function tap(id) {
  const [notification] = await self.registration.getNotifications({ tag: id });
  self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
}
