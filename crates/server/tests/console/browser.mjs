// A real Chromium, and a page in it that is watched: an error, a refusal by the content policy, a dialog or a
// request to anywhere else than the server ends the test.

import { createRequire } from "node:module";
import { connect, createServer } from "node:net";
import { join } from "node:path";

const { CONSOLE_TOOLS, CONSOLE_CHROMIUM, CONSOLE_URL } = process.env;
const { chromium } = createRequire(join(CONSOLE_TOOLS, "package.json"))("playwright-core");

const DESKTOP = { width: 1280, height: 800 };

export async function launch() {
  const browser = await chromium.launch({ executablePath: CONSOLE_CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  const complaints = [];
  return {
    complaints,
    /** A watched page in a context of its own, signed in with a token if one is given. */
    async page(token, options = {}) {
      const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: "reduce", locale: "en-GB", timezoneId: "UTC", ...options });
      const page = await context.newPage();
      watch(page, options.url ?? CONSOLE_URL, complaints);
      if (options.before) await options.before(page);
      const url = options.url ?? CONSOLE_URL;
      await page.goto(token ? `${url}/#token=${token}` : `${url}/`);
      if (token) await page.waitForSelector(".nav");
      return page;
    },
    close: () => browser.close(),
  };
}

function watch(page, url, complaints) {
  const expected = /401|403|404|409|net::ERR_CONNECTION|net::ERR_INCOMPLETE|net::ERR_EMPTY/;
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    // The browser itself reports refused requests; the page shows what the server said.
    if (message.text().startsWith("Failed to load resource") && expected.test(message.text())) return;
    complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => complaints.push(`popup: ${popup.url()}`));
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${url}/`) && !asked.startsWith("data:")) complaints.push(`request: ${asked}`);
  });
}

/** A line to the server that can be cut. */
export async function line() {
  const { hostname, port } = new URL(CONSOLE_URL);
  const open = new Set();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [from, to] of [[near, far], [far, near]]) {
      open.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  const listen = (at) => new Promise((resolve) => server.listen(at, "127.0.0.1", resolve));
  await listen(0);
  const own = server.address().port;
  return {
    url: `http://127.0.0.1:${own}`,
    cut() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      return closed;
    },
    mend: () => listen(own),
  };
}

/** Goes to a page of the console. */
export async function go(page, hash) {
  await page.evaluate((to) => (location.hash = to), hash);
}

/** Begins a conversation with these words. */
export async function start(page, words) {
  await go(page, "#/conversations/new");
  await page.getByRole("textbox", { name: "What should be done?" }).fill(words);
  await page.getByRole("button", { name: /^Start/ }).click();
  await page.waitForSelector(".conversation .cell.user");
}

/** Waits for the card of a question with this in it, until an answer would count. */
export async function card(page, text) {
  const found = page.locator(".card", { hasText: text });
  await found.waitFor();
  await page.waitForFunction((words) => [...document.querySelectorAll(".card")].some((one) => one.textContent.includes(words) && one.dataset.state === "ready"), text);
  return found;
}

export async function idle(page) {
  await page.locator(".conversation .title-row .status", { hasText: "idle" }).waitFor();
}

export function check(condition, what) {
  if (!condition) throw new Error(what);
}

export function same(found, expected, what) {
  const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: ${left} instead of ${right}`);
}
