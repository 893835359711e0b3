// A page that wants pushes: it subscribes, and tells its own backend everything that happens.
const tell = (what, more = {}) => fetch("/told", { method: "POST", body: JSON.stringify({ what, ...more }) });
const later = (ms) => new Promise((_, no) => setTimeout(() => no(new Error("no answer")), ms));

// A call that is made before the browser has spoken to its push service is never answered.
async function subscribed(registration, options) {
  for (;;) {
    try {
      return await Promise.race([registration.pushManager.subscribe(options), later(4000)]);
    } catch (error) {
      if (error.message !== "no answer") throw error;
    }
  }
}

async function main() {
  navigator.serviceWorker.addEventListener("message", ({ data }) => tell(data.what, data));
  await navigator.serviceWorker.register("/sw.js");
  const registration = await navigator.serviceWorker.ready;
  if (!navigator.serviceWorker.controller) {
    await new Promise((come) => navigator.serviceWorker.addEventListener("controllerchange", come));
  }
  await tell("opened", { path: location.pathname });
  if (location.pathname !== "/") return;
  const { key } = await (await fetch("/key")).json();
  const subscription = await subscribed(registration, { userVisibleOnly: true, applicationServerKey: key });
  await tell("subscribed", { subscription: subscription.toJSON() });
  const { tap } = await (await fetch("/order")).json(); // answered when the test wants the notification tapped
  registration.active.postMessage({ tap });
}

main().catch((error) => tell("failed", { error: `${error.name}: ${error.message}` }));
