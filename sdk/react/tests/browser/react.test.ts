import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { feedOf, newUser, open, send, settled, Site, startBrowser, WAYPOST } from "../../../js/tests/browser/site.js";

/** An app as somebody writes it with the packages, but for JSX. */
const APP = `
import { createElement as h, useState } from "react";
import { createRoot } from "react-dom/client";
import { Inbox, useCounts, useFeed, useWaypost } from "@waypost/react";

const url = ${JSON.stringify(WAYPOST)};
const user = new URLSearchParams(location.search).get("user");
const token = async () => (await fetch("/token?user=" + user)).text();

function App() {
  const client = useWaypost({ url, user, token });
  const { items, markAll } = useFeed(client);
  const { unread } = useCounts(client);
  const [opened, setOpened] = useState("");
  const onOpenEntry = (entry) => (setOpened(entry.title), false);
  return h("main", null,
    h("h1", null, "A shop"),
    h(Inbox, { client, align: "start", onOpenEntry, preferences: h("p", null, "Only by day") }),
    h("output", { id: "unread" }, unread),
    h("output", { id: "opened" }, opened),
    h("ol", null, items.map((each) => h("li", { key: each.id }, each.title))),
    h("button", { onClick: () => markAll("read") }, "Read all"));
}
document.body.replaceChildren();
createRoot(document.body.appendChild(document.createElement("div"))).render(h(App));
`;

const site = new Site();
let browser: Browser;

beforeAll(async () => {
  const resolveDir = fileURLToPath(new URL("../..", import.meta.url));
  const define = { "process.env.NODE_ENV": '"production"' };
  const built = await build({ stdin: { contents: APP, resolveDir }, bundle: true, format: "esm", write: false, define });
  await site.start();
  site.files.set("/react.js", { type: "text/javascript", body: built.outputFiles[0]!.text });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  site.stop();
});

test("a React app has the feed in its hooks and the inbox as a component", async () => {
  const context = await browser.newContext();
  const user = newUser();
  await send(user, "Before", { link: "https://shop.example/" });
  const page = await open(context, user, { script: "/react.js" });
  await page.locator("ol > li").getByText("Before").waitFor();
  await page.waitForFunction(() => (document.querySelector("waypost-inbox") as any)?.client?.state === "live");
  await send(user, "After");
  await page.locator("ol > li").getByText("After").waitFor();
  expect(await page.locator("#unread").textContent()).toBe("2");
  await page.getByRole("button", { name: "Notifications, 2 unread" }).click();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByText("Only by day").waitFor();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Before" }).click();
  await page.locator("#opened").getByText("Before").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Read all" }).click();
  await settled(async () => (await feedOf(user)).unread === 0);
  await page.locator("#unread").getByText("0").waitFor();
  await context.close();
});
