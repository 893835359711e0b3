// The dashboard in Chromium: each page by mouse or keyboard, light, dark and on a phone, with axe. Prints what was seen, as JSON.
import { createRequire } from "node:module";
import { join } from "node:path";

const [base, sdk, given, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(sdk, "package.json"))("playwright-core");
const axe = createRequire(join(sdk, "package.json")).resolve("axe-core/axe.min.js");
const { wanted, failed, alert, user, link } = JSON.parse(given);
const PAGES = ["overview", "events", `events/${wanted}`, "failed", "alerts", "providers", "providers/-/test", "access", "settings?all=1"];
const seen = { faults: [], axe: {}, wide: [], streams: 0, steps: [] };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

async function opened(options) {
  const context = await browser.newContext({ bypassCSP: false, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.on("console", (said) => said.type() === "error" && seen.faults.push(said.text()));
  page.on("pageerror", (error) => seen.faults.push(String(error)));
  page.on("request", (request) => { if (request.resourceType() === "eventsource") seen.streams += 1; });
  await page.goto(base + link);
  return page;
}

async function audit(page, name) {
  const session = await page.context().newCDPSession(page); // past the page's own policy, which lets no script in
  const source = await import("node:fs").then((fs) => fs.readFileSync(axe, "utf8"));
  await session.send("Runtime.evaluate", { expression: source });
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const violations = found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  if (violations.length) seen.axe[name] = violations;
}

const at = (page) => `${base}/dashboard/demo/${page}`;
const step = (name, isSo) => seen.steps.push([name, Boolean(isSo)]);

async function each(look, options) {
  const page = await opened(options);
  for (const name of PAGES) {
    await page.goto(at(name));
    if (look !== "phone" || ["overview", "failed"].includes(name)) await audit(page, `${name}, ${look}`);
    const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    if (isWide) seen.wide.push(`${name}, ${look}`);
    if (pictures) await page.screenshot({ path: join(pictures, `${name.replace(/[/?=]/g, "-").slice(0, 14)}-${look}.png`) });
  }
  await page.context().close();
}

const watched = await opened({});
step("the link leads to the overview, and is gone from the address", watched.url() === at("overview"));
await watched.goto(`${base}/dashboard`);
step("the front leads to the overview", watched.url() === at("overview"));
step("the graph is drawn", await watched.locator("#graph canvas").count() === 1);

await each("light", { colorScheme: "light", viewport: { width: 1280, height: 800 } });
await each("dark", { colorScheme: "dark", viewport: { width: 1280, height: 800 } });
await each("phone", { viewport: { width: 390, height: 844 }, isMobile: true });

const page = await opened({});
await page.goto(at("overview"));
await page.keyboard.press("Tab");
step("the first stop of the keyboard skips the menu", await page.evaluate(() => document.activeElement.className) === "skip");
await page.keyboard.press("Enter");
step("and leads to the page", await page.evaluate(() => document.activeElement.id) === "main");

await page.goto(at("events"));
await page.getByLabel("Find").fill(user);
await page.keyboard.press("Enter");
await page.waitForURL(/q=/);
await page.getByRole("link", { name: wanted }).click();
await page.getByRole("heading", { name: wanted }).waitFor();
step("a search by user leads to the story", await page.getByText("How it travelled").count() === 1);
step("what the rules say is told", await page.getByRole("region", { name: "What each rule says" }).or(page.getByText("no device now")).count() === 1);
step("the message is hidden", await page.getByText("Hello").count() === 0);
await page.getByRole("button", { name: "Show the message" }).click();
await page.getByText("Hello").waitFor();
step("and shown when asked for", true);

await page.goto(at("failed"));
await page.getByRole("checkbox", { name: new RegExp(failed) }).focus();
await page.keyboard.press("Space");
await page.getByRole("button", { name: "Retry those chosen" }).press("Enter");
await page.getByRole("heading", { name: "Retry 1 notification?" }).waitFor();
step("what a retry does is said first", await page.getByText("begins a new round").count() === 1);
await page.getByRole("button", { name: "Retry 1 notification" }).press("Enter");
await page.getByRole("status").waitFor();
step("a retry is told", (await page.getByRole("status").textContent()).includes("1 began a new round"));
step("and leaves the page", await page.getByText(failed).count() === 0);
await page.getByLabel("All on this page").check();
step("one box chooses all", await page.locator('input[name="id"]:not(:checked)').count() === 0);

await page.goto(at("alerts"));
step("an alert is listed with its details", await page.getByText(alert).count() === 1 && await page.getByText("orphaned pending").count() === 1);
await page.getByRole("button", { name: "Retry" }).click();
await page.getByText("No alerts").waitFor();
step("an alert is retried", true);

await watched.waitForFunction(() => document.querySelectorAll(".warning").length === 0, null, { timeout: 20_000 });
step("the overview follows by itself", true);

await browser.close();
console.log(JSON.stringify(seen));
