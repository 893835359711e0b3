import axe from "axe-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ask, complaintsOf, feedOf, fill, newUser, open, ORIGIN, send, settled, Site, startBrowser, WAYPOST } from "./site.js";

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

const bell = (page: Page, unread = 0) =>
  page.getByRole("button", { name: unread ? `Notifications, ${unread} unread` : "Notifications", exact: true });
const row = (page: Page, title: string) => page.getByRole("listitem").filter({ has: page.getByText(title, { exact: true }) });
const entries = (page: Page) => page.locator("waypost-inbox .entry .name").allTextContents();
const isLive = (page: Page) => page.waitForFunction(() => (window as any).inbox?.client?.state === "live");

/** The calls of the list that pages make from now on. */
function listings(): string[] {
  const seen: string[] = [];
  context.on("request", (request) => request.url().includes("/feed?") && request.method() === "GET" && seen.push(request.url()));
  return seen;
}

test("what is sent appears at once, with its count, under the strictest content policy", async () => {
  const user = newUser();
  const page = await open(context, user);
  await bell(page).click();
  await page.getByText("Nothing here yet").waitFor();
  await isLive(page);
  await send(user, "Your parcel is here", { body: "Left at the front door." });
  await row(page, "Your parcel is here").waitFor();
  await bell(page, 1).waitFor();
  expect(complaintsOf(page)).toEqual([]);
});

test("only the files for pages are handed out", async () => {
  const statuses = ["inbox.js", "worker.js", "parts.py", "..%2Fparts.py"].map(async (name) => (await fetch(`${WAYPOST}/sdk/${name}`)).status);
  expect(await Promise.all(statuses)).toEqual([200, 200, 404, 404]);
});

test("the look is the page's to change: by variables and by parts", async () => {
  const page = await open(context, newUser());
  await bell(page).click();
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("waypost-inbox { --waypost-background: rgb(1, 2, 3) } waypost-inbox::part(title) { color: rgb(4, 5, 6) }");
    document.adoptedStyleSheets = [sheet];
  });
  const colour = (part: string, name: string) => page.locator(`waypost-inbox [part=${part}]`).evaluate((each, name) => getComputedStyle(each).getPropertyValue(name), name);
  expect(await colour("panel", "background-color")).toBe("rgb(1, 2, 3)");
  expect(await colour("title", "color")).toBe("rgb(4, 5, 6)");
});

test("pages load while scrolling, each once, and none past the end", async () => {
  const user = newUser();
  for (let n = 1; n <= 45; n++) await send(user, `Number ${n}`);
  await settled(async () => (await feedOf(user)).items.length === 45);
  const titles = (await feedOf(user)).items.map((each) => each.title);
  const seen = listings();
  const page = await open(context, user);
  await isLive(page); // a connection that begins while the list is opened has it loaded anew
  await bell(page, 45).click();
  await row(page, titles[0]!).waitFor();
  const scroll = page.locator("waypost-inbox .scroll");
  for (const last of [titles[39]!, titles[44]!]) {
    while ((await row(page, last).count()) === 0) await scroll.evaluate((box) => (box.scrollTop = box.scrollHeight));
  }
  await scroll.evaluate((box) => ((box.scrollTop = 0), (box.scrollTop = box.scrollHeight)));
  expect(await entries(page)).toEqual(titles);
  expect(seen.map((url) => new URL(url).searchParams.get("limit"))).toEqual(["20", "20", "20"]);
  expect(new Set(seen).size).toBe(3);
});

test("one is marked as read and unread again, all are marked as read, and the server knows", async () => {
  const user = newUser();
  await fill(user, 3);
  const page = await open(context, user);
  await bell(page, 3).click();
  const one = row(page, "Number 2");
  await one.getByRole("button", { name: "Mark as read" }).click();
  await page.locator("waypost-inbox .entry.unread").nth(1).waitFor();
  expect(await one.getAttribute("class")).toBe("entry");
  await settled(async () => (await feedOf(user)).unread === 2);
  await one.getByRole("button", { name: "Mark as unread" }).click();
  await settled(async () => (await feedOf(user)).unread === 3);
  await page.getByRole("button", { name: "Mark all as read" }).click();
  await bell(page).waitFor();
  await settled(async () => (await feedOf(user)).unread === 0);
  expect(await page.locator("waypost-inbox .entry.unread").count()).toBe(0);
});

test("one is deleted, and comes back by undo", async () => {
  const user = newUser();
  await fill(user, 3);
  const page = await open(context, user);
  await bell(page, 3).click();
  await row(page, "Number 2").getByRole("button", { name: "Delete" }).click();
  await settled(async () => (await feedOf(user)).items.length === 2);
  expect(await entries(page)).toEqual(["Number 3", "Number 1"]);
  await page.getByRole("button", { name: "Undo" }).click();
  await row(page, "Number 2").waitFor();
  await settled(async () => (await feedOf(user)).items.length === 3);
  expect(await entries(page)).toEqual(["Number 3", "Number 2", "Number 1"]);
  await bell(page, 3).waitFor();
});

test("what is refused comes back, and the page says so in words", async () => {
  const user = newUser();
  await fill(user, 1);
  const page = await open(context, user, { lang: "de" });
  await page.getByRole("button", { name: "Mitteilungen, 1 ungelesen" }).click();
  await row(page, "Number 1").waitFor();
  await context.route("**/feed/marks", (route) => route.abort());
  await row(page, "Number 1").getByRole("button", { name: "Löschen" }).click();
  await page.getByRole("alert").getByText("Keine Verbindung. Prüfen Sie das Netz und versuchen Sie es noch einmal.").waitFor();
  await row(page, "Number 1").waitFor();
  expect((await feedOf(user)).items.length).toBe(1);
});

test("the filter shows what is unread, and keeps up", async () => {
  const user = newUser();
  await fill(user, 2);
  const page = await open(context, user);
  await bell(page, 2).click();
  await isLive(page);
  await row(page, "Number 1").getByRole("button", { name: "Mark as read" }).click();
  await page.getByRole("button", { name: "Unread", exact: true }).click();
  await row(page, "Number 2").waitFor();
  await row(page, "Number 1").waitFor({ state: "detached" });
  expect(await entries(page)).toEqual(["Number 2"]);
  await send(user, "Another");
  await row(page, "Another").waitFor();
  await page.getByRole("button", { name: "Mark all as read" }).click();
  await bell(page).waitFor();
  expect(await entries(page)).toEqual(["Another", "Number 2"]); // what was just read does not jump away
  await page.getByRole("button", { name: "All", exact: true }).click();
  await page.getByRole("button", { name: "Unread", exact: true }).click();
  await page.getByText("You have read everything").waitFor();
});

test("a click opens the link and marks it read; a script in a link is none", async () => {
  const user = newUser();
  await send(user, "Bad", { link: "javascript:alert(1)" }).catch(() => undefined);
  const parcel = await send(user, "Parcel", { link: `${ORIGIN}/parcel?user=${user}` });
  const page = await open(context, user);
  await bell(page, 2).click();
  expect(await row(page, "Bad").getByRole("link").count()).toBe(0);
  await row(page, "Parcel").getByRole("link").click();
  await page.waitForURL(/\/parcel/);
  await settled(async () => (await feedOf(user)).items.find((each) => each.id === parcel)!.read_at !== null);
});

test("the keyboard reaches everything, and Escape leads back to the bell", async () => {
  const user = newUser();
  await fill(user, 3);
  const page = await open(context, user);
  await bell(page, 3).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await row(page, "Number 3").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const focused = () => page.evaluate(() => (document.activeElement!.shadowRoot!.activeElement as HTMLElement).innerText);
  expect(await focused()).toContain("Number 2");
  await page.keyboard.press("Tab"); // mark as read
  await page.keyboard.press("Enter");
  await settled(async () => (await feedOf(user)).unread === 2);
  await page.keyboard.press("Tab"); // delete
  await page.keyboard.press("Enter");
  await settled(async () => (await feedOf(user)).items.length === 2);
  expect(await focused()).toContain("Number 1");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  expect(await page.evaluate(() => document.activeElement!.shadowRoot!.activeElement!.className)).toBe("bell");
});

test("the settings pane says what the user wants, and writes it with each click", async () => {
  const user = newUser();
  const wanted = async () => {
    const said = await ask("GET", `/v1/users/${user}/preferences`);
    return { ...said.types.find((each: any) => each.name === "offer").channels, enabled: said.enabled };
  };
  const page = await open(context, user, { preferences: "" });
  await bell(page).click();
  await page.getByRole("button", { name: "Settings" }).click();
  const offers = page.getByRole("group", { name: "Offers" });
  await page.getByRole("group", { name: "code" }).getByText("Always sent").waitFor();
  expect(await violations(page)).toEqual([]);
  expect(await offers.getByRole("checkbox", { name: "Push" }).isChecked()).toBe(true);
  await offers.getByRole("checkbox", { name: "Push" }).uncheck();
  await settled(async () => (await wanted()).push === false);
  expect(await wanted()).toMatchObject({ inapp: true, enabled: true });
  await page.getByRole("checkbox", { name: "Nothing but what is always sent" }).check();
  await settled(async () => (await wanted()).enabled === false);
  expect(complaintsOf(page)).toEqual([]);
  await page.route("**/preferences", (route) => (route.request().method() === "PATCH" ? route.abort() : route.continue()));
  await offers.getByRole("checkbox", { name: "In the app" }).click();
  await page.getByRole("alert").getByText("offline").waitFor();
  await settled(() => offers.getByRole("checkbox", { name: "In the app" }).isChecked());
});

test("axe finds nothing: closed, empty, full, dark, from right to left, with a problem", async () => {
  const [empty, full] = [newUser(), newUser()];
  await send(full, "Old", { body: "Read already", actions: [{ id: "a", title: "Look", link: "https://example.com/" }] });
  await settled(async () => (await feedOf(full)).items.length === 1);
  const looks: [string, Record<string, string>][] = [
    [empty, {}],
    [full, {}],
    [full, { theme: "dark" }],
    [full, { lang: "ar", dir: "rtl" }],
  ];
  for (const [user, more] of looks) {
    const page = await open(context, user, more);
    if (more["theme"]) await page.emulateMedia({ colorScheme: "dark" });
    await page.locator("waypost-inbox .bell").waitFor();
    if (user === empty) expect(await violations(page)).toEqual([]);
    await page.locator("waypost-inbox .bell").click();
    await page.locator(user === full ? "waypost-inbox .entry" : "waypost-inbox .note").waitFor();
    if (user === full) await page.locator("waypost-inbox .delete").focus();
    expect(await violations(page)).toEqual([]);
    await page.close();
  }
  await context.route(`${WAYPOST}/v1/**`, (route) => route.fulfill({ status: 503, headers: { "access-control-allow-origin": "*" } }));
  const page = await open(context, newUser());
  await page.locator("waypost-inbox .bell").click();
  await page.getByRole("alert").getByText("The service is busy").waitFor();
  await page.getByRole("button", { name: "Try again" }).waitFor();
  expect(await violations(page)).toEqual([]);
});

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const found = await (window as any).axe.run(document, { resultTypes: ["violations"] });
    return found.violations.map((each: any) => `${each.id}: ${each.nodes.map((node: any) => node.html).join(" ")}`);
  });
}
