import type { Browser, BrowserContext } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { complaintsOf, fill, newUser, open, send, Site, settled, startBrowser } from "./site.js";

const site = new Site();
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  await site.start();
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  site.stop();
});
beforeEach(async () => {
  context = await browser.newContext();
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") for (const page of context.pages()) console.log(page.url(), complaintsOf(page));
  await context.close();
});

test("what is sent appears at once, with its count", async () => {
  const user = newUser();
  const page = await open(context, user);
  await page.getByRole("button", { name: "Notifications" }).click();
  await page.getByText("Nothing here yet").waitFor();
  await page.waitForFunction(() => (window as any).inbox.client.state === "live");
  await send(user, "Your parcel is here", { body: "Left at the front door." });
  await page.getByText("Your parcel is here", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Notifications, 1 unread" }).waitFor();
  expect(complaintsOf(page)).toEqual([]);
});
