// What a person does in the console, and what must come of it. Each scenario has a server of its own, whose model
// says what the test in crates/cli/tests/console.rs gave it.

import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { card, check, go, idle, line, same, start } from "./browser.mjs";
import { looks } from "./looks.mjs";

const { CONSOLE_URL, CONSOLE_CODE, CONSOLE_APPROVER, CONSOLE_REQUESTER, CONSOLE_WORLD, CONSOLE_SHOTS, CONSOLE_HOW } = process.env;

/** Answers a question by its key or by its button. */
async function answer(page, text, key) {
  const found = await card(page, text);
  if (CONSOLE_HOW === "click") {
    await found.locator(`.answer[data-key="${key}"]`).click();
  } else {
    await found.focus();
    await page.keyboard.press(key);
  }
  return found;
}

async function gone(found) {
  await found.waitFor({ state: "detached" });
}

export async function signIn({ page: open }) {
  const page = await open(null);
  await page.getByRole("heading", { name: "Open the console" }).waitFor();
  check(!(await page.locator(".nav").count()), "a page is shown without a token");
  await page.getByLabel("Token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "does not know this token" }).waitFor();
  await page.getByLabel("Token").fill(`${CONSOLE_URL}/#token=${CONSOLE_APPROVER}`);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".nav");

  // The address of a person opens one page, once.
  const code = CONSOLE_CODE;
  const second = await open(null);
  await second.goto(`${CONSOLE_URL}/#code=${code}`);
  await second.waitForSelector(".nav");
  check(!second.url().includes(code), "the code stays in the address");
  const kept = await second.evaluate(() => [Object.values(localStorage), document.cookie, sessionStorage.length, window.name]);
  same(kept.slice(1), ["", 0, ""], "something is kept");
  check(!kept[0].join().match(/[A-Za-z0-9_-]{43}/), "the token is kept");
  await go(second, "#/settings");
  await second.getByRole("button", { name: "Forget the token" }).click();
  await second.getByRole("heading", { name: "Open the console" }).waitFor();
  const third = await open(null);
  await third.goto(`${CONSOLE_URL}/#code=${code}`);
  await third.getByRole("alert").filter({ hasText: "opened before" }).waitFor();
  check(!(await third.locator(".nav").count()), "a code counts twice");

  const fourth = await open(CONSOLE_APPROVER);
  await fourth.reload();
  await fourth.getByRole("heading", { name: "Open the console" }).waitFor();
}

export async function conversation({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await page.getByRole("heading", { name: "A new conversation" }).waitFor();
  await start(page, "Say hello\nand then more");
  await page.locator(".cell.user", { hasText: "and then more" }).waitFor();
  const said = page.locator(".cell.model .prose");
  await said.getByText("I will look").waitFor();
  same(await said.locator("li code").allTextContents(), ["ls", "make"], "what was said as a list");

  // The command waits for us, so what is written now is put in line.
  const call = page.locator(".cell.call", { hasText: "printf" });
  await call.locator(".output", { hasText: "red" }).waitFor();
  same(await call.locator(".output .f1").allTextContents(), ["red"], "what is red");
  check(!(await call.locator(".output").textContent()).includes("10%"), "an overwritten line is shown");
  await page.getByRole("textbox", { name: "Message" }).fill("and now the second");
  await page.keyboard.press("Enter");
  await page.locator(".queued li", { hasText: "and now the second" }).waitFor();
  // Somebody else looks at the same conversation.
  const other = await open(CONSOLE_APPROVER);
  await go(other, new URL(page.url()).hash);
  await other.locator(".cell.call .output", { hasText: "red" }).waitFor();
  writeFileSync(join(CONSOLE_WORLD, "pipe"), "go\n");
  await call.locator(".status", { hasText: "exit 0" }).waitFor();
  await page.locator(".cell.user", { hasText: "and now the second" }).waitFor();
  same(await page.locator(".queued li").count(), 0, "messages in line");

  // The second turn runs something endless.
  const endless = page.locator(".cell.call", { hasText: "sleep 1000" });
  await endless.locator(".status.working").waitFor();
  await page.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.press("Escape");
  await page.locator(".cell.note", { hasText: "The turn was ended" }).waitFor();
  await idle(page);
  check((await page.locator(".meter").textContent()).includes("120 in"), "the tokens are not counted");

  const elsewhere = other.locator(".cell.user .said");
  await elsewhere.nth(1).waitFor();
  same(await elsewhere.allTextContents(), ["Say hello\nand then more", "and now the second"], "what the other sees");

  const texts = () => page.locator(".cell.user .said").allTextContents();
  const before = await texts();
  same(before, ["Say hello\nand then more", "and now the second"], "what the person said");
  const place = new URL(page.url()).hash;
  await page.reload();
  await page.getByLabel("Token").fill(CONSOLE_APPROVER);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".nav");
  await go(page, place);
  await page.locator(".cell.note", { hasText: "The turn was ended" }).waitFor();
  same(await texts(), before, "what the person said, after the page was loaded again");
  same(await page.locator(".cell.call").count(), 2, "calls, after the page was loaded again");

  // It is closed, and what was said stays.
  await page.getByRole("button", { name: "Close" }).click();
  const listed = page.locator(".side-list a", { hasText: "Say hello" });
  await listed.locator(".state", { hasText: "recorded" }).waitFor();
  await listed.click();
  await page.locator(".cell.user", { hasText: "and now the second" }).waitFor();
  same(await texts(), before, "what the person said, from the record");
}

/** Under a policy that asks before everything: once, for the session, by a rule, no with a word, stop. */
export async function end({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "Begin");
  await page.locator(".card", { hasText: "touch asked" }).waitFor();
  const isAtEnd = () => {
    const { scrollTop, clientHeight, scrollHeight } = document.querySelector(".scroller");
    return scrollHeight > clientHeight && scrollTop + clientHeight >= scrollHeight - 40;
  };
  await page.waitForFunction(isAtEnd);
  same(await page.locator(".cell.model .prose strong").allTextContents(), ["strong"], "what is strong");
}

export async function answers({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await go(page, "#/approvals");
  const first = await card(page, "touch one");
  same(await first.locator("h2").first().textContent(), "May this run?", "what is asked");
  check((await first.textContent()).includes("it runs this once, and the sandbox stays as it is"), "what a plain yes means");
  await gone(await answer(page, "touch one", "y"));
  // The same again is not asked about after a yes for the session.
  await gone(await answer(page, "touch two", "s"));
  await gone(await answer(page, "mkdir three", "r"));
  const no = await answer(page, "touch four", "n");
  await page.keyboard.type("use make instead");
  await page.keyboard.press("Enter");
  await gone(no);
  await gone(await answer(page, "touch five", "a"));
  await page.getByText("Nothing waits for you").waitFor();
  const told = await page.locator(".answered .verdict").allTextContents();
  same(told, ["no, and stop", "no", "yes, always", "yes, for the session", "yes, once"], "what was answered here");
  await go(page, "#/conversations");
  await page.locator(".side-list a", { hasText: "go" }).click();
  await page.locator(".cell.note", { hasText: "The turn was ended" }).waitFor();
  await page.locator(".call-notes", { hasText: ": no: use make instead" }).first().waitFor({ state: "attached" });
}

/** What the sandbox blocked: a grant for the call, one for the session, and leaving the sandbox. */
export async function blocked({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  const first = await card(page, "/first");
  same(await first.locator("h2").first().textContent(), "The sandbox blocked this.", "what is asked");
  check(/create|write/.test(await first.locator(".facts .blocked").first().textContent()), "what was blocked");
  check((await first.textContent()).includes("WITHOUT the sandbox, with all your rights"), "what a plain yes means");
  await first.focus();
  await page.keyboard.press("e");
  await first.getByText("What the grant opens, and nothing else").waitFor();
  await gone(await answer(page, "/first", "g"));
  await gone(await answer(page, "/second", "G"));
  // What was granted for the session is not asked about again: the next question is another.
  await gone(await answer(page, "/elsewhere", "y"));
  await idle(page);
}

/** What was typed or clicked before a question stood still is no answer to it. */
export async function guard({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  const answers = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().includes("/approvals/")) answers.push(request.url());
  });
  await go(page, "#/approvals");
  await page.getByText("Nothing waits for you").waitFor();
  // At the very moment when a card is there, everything is pressed.
  await page.evaluate(() => {
    window.pressed = 0;
    new MutationObserver(() => {
      for (const found of document.querySelectorAll(".card:not([data-tried])")) {
        found.setAttribute("data-tried", "");
        found.focus();
        for (const key of ["y", "s", "a"]) found.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        found.querySelector('.answer[data-key="y"]').click();
        window.pressed += 1;
      }
    }).observe(document.querySelector(".queue"), { childList: true });
  });
  const asker = await open(CONSOLE_APPROVER);
  await start(asker, "go");
  await card(page, "touch one");
  same(await page.evaluate(() => window.pressed), 1, "cards that were pressed at once");
  same(answers, [], "answers that nobody meant");
  // Without the focus, with a modifier, or held down, a key is no answer either.
  const found = page.locator(".card", { hasText: "touch one" });
  await page.locator("h1").click();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("y");
  await found.focus();
  await page.keyboard.press("Control+y");
  await found.evaluate((element) => element.dispatchEvent(new KeyboardEvent("keydown", { key: "y", repeat: true, bubbles: true })));
  // The server would have taken an answer by the time it takes a question.
  await page.evaluate(() => fetch("/healthz"));
  same(answers, [], "answers that nobody meant");
  await page.keyboard.press("y");
  await gone(found);
  same(answers.length, 1, "answers");
}

export async function requester({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await card(page, "touch one");
  const other = await open(CONSOLE_REQUESTER);
  await go(other, "#/approvals");
  const found = other.locator(".card", { hasText: "touch one" });
  await found.locator(".read-only").waitFor();
  same(await found.locator(".answer:not(.quiet)").count(), 0, "buttons");
  await other.waitForFunction(() => document.querySelector(".card").dataset.state === "ready");
  await found.focus();
  for (const key of ["y", "s", "g", "r", "n", "a"]) await other.keyboard.press(key);
  // The page could be changed by whoever has it; the server says no as well.
  const refused = await other.evaluate(
    async ([token, id]) => (await fetch(`/approvals/${id}`, { method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: '{"decision":"approved"}' })).status,
    [CONSOLE_REQUESTER, await found.getAttribute("data-id")],
  );
  same(refused, 403, "what the server says to a requester's answer");
  await go(other, "#/audit");
  await other.getByText("shown to the approver only").waitFor();
  same(await found.count() + (await page.locator(".card").count()), 1, "the question still waits");
  await answer(page, "touch one", "n");
  await page.keyboard.press("Enter");
  await idle(page);
}

export async function hearers({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  const says = async (text) => (await card(page, text)).locator('input[name="feedback"]').getAttribute("placeholder");
  await start(page, "go");
  await go(page, "#/approvals");
  check((await says("touch one")).includes("told to the model"), "a model hears it");
  await answer(page, "touch one", "n");
  await page.keyboard.press("Enter");
  const calling = fetch(`${CONSOLE_URL}/tools/shell`, {
    method: "POST",
    headers: { Authorization: `Bearer ${CONSOLE_REQUESTER}`, "Content-Type": "application/json" },
    body: JSON.stringify({ arguments: { command: ["touch", "two"] } }),
  });
  check((await says("touch two")).includes("told to the program that made the call"), "there is no model");
  await answer(page, "touch two", "n");
  await page.keyboard.type("not that");
  await page.keyboard.press("Enter");
  const { output } = await (await calling).json();
  check(output.includes("not that"), `the program was told: ${output}`);
}

export async function patch({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await go(page, "#/approvals");
  const found = await card(page, "May these files be changed?");
  const files = await found.locator(".file-list .path").allTextContents();
  check(files.length === 2 && files.every((path) => path.includes("/outside/")), `files: ${files}`);
  check((await found.locator("table.split").count()) === 2, "a wide screen shows both sides");
  await found.getByRole("button", { name: "Unified" }).click();
  check((await found.locator("table.unified").count()) === 2, "one side after the other");
  same(await found.locator("tr.remove td.text").allTextContents(), ["two"], "what goes");
  same(await found.locator("tr.add td.text").allTextContents(), ["2", "four", "new \\u{202e}here"], "what comes");
  await answer(page, "May these files be changed?", "y");
  await gone(found);
  await go(page, "#/conversations");
  await page.locator(".side-list a", { hasText: "go" }).click();
  await page.locator(".cell.call .status", { hasText: "applied" }).waitFor();
  check((await page.locator(".cell.call .file").count()) === 2, "the changes are in the conversation");
  await idle(page);
}

export async function longPatch({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await go(page, "#/approvals");
  const found = await card(page, "May these files be changed?");
  // What the list has left out comes by itself.
  await found.locator(".stat .plus", { hasText: "+5000" }).waitFor();
  check((await found.locator(".cut").count()) === 0, "it says that it is cut");
  await answer(page, "May these files be changed?", "y");
  await gone(found);
  await go(page, "#/conversations");
  await page.locator(".side-list a", { hasText: "go" }).click();
  await idle(page);
}

export async function terminal({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await idle(page);
  await go(page, "#/terminals");
  await page.locator(".side-list a", { hasText: "ready>" }).first().click();
  const screen = page.locator(".xterm-rows");
  await screen.getByText("ready>").waitFor();
  await page.keyboard.type("hello there");
  await page.keyboard.press("Enter");
  // The line is what was typed alone: what the program asked the terminal before we came is not answered now.
  await screen.getByText("got hello there, 11 letters").waitFor();
  // Nor is what it asks now.
  await page.keyboard.type("ask");
  await page.keyboard.press("Enter");
  await screen.getByText("asked").waitFor();
  await page.keyboard.type("after");
  await page.keyboard.press("Enter");
  await screen.getByText("got after, 5 letters").waitFor();
  // What is sent at once is counted in bytes, and no letter is cut.
  const parts = await page.evaluate(async () => {
    const { beginning } = await import("/assets/terminals.js");
    return ["abc", "äöü", "a😀b", ""].map((text) => beginning(text, 4));
  });
  same(parts, ["abc", "äö", "a", ""], "beginnings");
  // Colours beyond the palette are inline styles in xterm.js, which the content policy refuses.
  await page.keyboard.type("colour");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll(".xterm-rows span")].some((span) => span.textContent.includes("orange") && span.style.color !== ""));
  const shown = await page.locator(".xterm-rows").evaluate((rows) => getComputedStyle(rows.querySelector("span")).display);
  same(shown, "inline-block", "the terminal's own styles");
  // The program has the size that the browser has.
  await page.keyboard.type("size");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /rows [1-9]\d*/.test(document.querySelector(".xterm-rows").textContent));
  const size = /rows (\d+) columns (\d+)/.exec((await screen.textContent()).replaceAll("\u00a0", " "));
  check(size && Number(size[2]) !== 80, `it has the size of the browser: ${size}`);

  const other = await open(CONSOLE_REQUESTER);
  await go(other, new URL(page.url()).hash);
  await other.locator(".xterm-rows").getByText("got hello there").waitFor();
  await other.getByText("may look and not type").waitFor();
  await other.locator(".xterm").click();
  await other.keyboard.type("never");
  await page.keyboard.type("last");
  await page.keyboard.press("Enter");
  await screen.getByText("got last").waitFor();
  check(!(await screen.textContent()).includes("never"), "a requester typed");
  await page.getByRole("button", { name: "End it" }).click();
  await page.locator(".title-row .status", { hasText: "ended" }).waitFor();
}

export async function audit({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await idle(page);
  await go(page, "#/audit");
  const rows = page.locator(".audit-row");
  await rows.filter({ hasText: "echo first" }).waitFor();
  await rows.filter({ hasText: "echo second" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("ECHO SECOND");
  await rows.filter({ hasText: "echo first" }).waitFor({ state: "detached" });
  const found = rows.filter({ hasText: "echo second" });
  await found.waitFor();
  await found.locator("summary").click();
  await found.getByText("call asked").waitFor();
  await page.getByLabel("Search").fill("nothing has this in it");
  await page.getByText("0 records").waitFor();
  await page.getByLabel("Search").fill("");
  await page.getByLabel("Kind of record").selectOption("session_started");
  await page.waitForFunction(() => document.querySelectorAll(".audit-row").length > 0 && [...document.querySelectorAll(".audit-row")].every((row) => row.dataset.kind === "session_started"));
  await page.getByText("As a table").click();
  const table = page.locator(".numbers table");
  same(await table.locator("thead th").allTextContents(), ["Hour", "Commands", "Approvals", "Denials"], "the table's head");
  const last = (await table.locator("tbody tr").last().locator("td").allTextContents()).map(Number);
  check(last[0] >= 2, `commands in this hour: ${last}`);
  check((await page.locator(".chart svg .bar.commands").count()) > 0, "a chart");
}

/** Text of a model and of a command that wants to be something else. */
export async function hostile({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  const found = await card(page, "evil");
  const command = await found.locator(".command").textContent();
  for (const spelled of ["\\u{202e}", "\\u{200b}", "\\u{1b}[2J"]) check(command.includes(spelled), `${spelled} is not spelled out in ${command}`);
  same(await page.locator(".card").count(), 1, "cards");
  const shownAs = await found.evaluate((element) => ({ titles: [...element.querySelectorAll(":scope > header h2")].map((title) => title.textContent), images: element.querySelectorAll("img, script, iframe, style, object").length }));
  same(shownAs, { titles: ["May this run WITHOUT the sandbox?"], images: 0 }, "what the card is made of");
  check((await found.locator(".model-says").textContent()).includes("<img"), "the model's words are text");
  await answer(page, "evil", "y");
  await page.locator(".cell.model", { hasText: "the end" }).waitFor();
  const made = await page.evaluate(() => ({
    pwned: window.pwned === undefined,
    elements: document.querySelectorAll(".transcript :is(img, script, iframe, style, object, form, input)").length,
    links: [...document.querySelectorAll(".transcript a")].map((link) => link.href),
    cards: document.querySelectorAll(".card").length,
    controls: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/.test(document.querySelector(".transcript").textContent),
  }));
  same(made, { pwned: true, elements: 0, links: ["https://example.com/", "https://example.com/p.png"], cards: 0, controls: false }, "what became of it");
  check((await page.locator(".cell.model").last().textContent()).includes("(https://example.com/)"), "where a link leads is shown");
  // Nothing is painted outside of its cell, and nothing is wider than it.
  for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
    await page.setViewportSize(viewport);
    const outside = await page.evaluate(() =>
      [...document.querySelectorAll(".transcript > .cell")].flatMap((cell) => {
        const box = cell.getBoundingClientRect();
        const parts = [...cell.querySelectorAll(".untrusted")].filter((part) => part.checkVisibility());
        return parts.filter((part) => {
          const inner = part.getBoundingClientRect();
          return inner.left < box.left - 1 || inner.right > box.right + 1 || inner.bottom > box.bottom + 1 || !getComputedStyle(part).contain.includes("paint");
        }).map((part) => part.className);
      }),
    );
    same(outside, [], "what leaves its cell");
    same(await looks(page), [], "looks");
  }
}

export async function longOutput({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await idle(page);
  const output = page.locator(".cell.call .output").first();
  await output.locator(".gap", { hasText: "left out here" }).waitFor();
  const lines = await output.locator(".line").count();
  check(lines <= 1001, `${lines} lines are on the page`);
  same(await output.locator(".line").first().textContent(), "line 1", "the first line");
  const left = Number((await output.locator(".gap").textContent()).replace(/\D/g, ""));
  check(left > 500, `${left} lines are left out`);
}

/** Title, picture, voice and notification tell that somebody waits; what is lost comes again. */
export async function told({ page: open }) {
  const wire = await line();
  const page = await open(CONSOLE_APPROVER, {
    url: wire.url,
    before: (fresh) =>
      fresh.addInitScript(() => {
        window.told = [];
        window.Notification = class {
          static permission = "granted";
          constructor(title, options) {
            window.told.push([title, options.body]);
          }
        };
        Object.defineProperty(document, "hasFocus", { value: () => false });
      }),
  });
  await go(page, "#/settings");
  const picture = await page.locator("link[rel=icon]").getAttribute("href");
  const asker = await open(CONSOLE_APPROVER);
  await start(asker, "go");
  await page.locator(".nav .number", { hasText: "1" }).waitFor();
  check((await page.title()).startsWith("(1) "), `title: ${await page.title()}`);
  check((await page.locator("link[rel=icon]").getAttribute("href")) !== picture, "the picture is the same");
  await go(page, new URL(asker.url()).hash);
  await page.locator(".cell.call", { hasText: "touch one" }).waitFor();
  await page.locator("#live", { hasText: "An approval waits" }).waitFor({ state: "attached" });
  const notes = await page.evaluate(() => window.told);
  check(notes.length === 1 && notes[0][0] === "An approval waits" && notes[0][1].includes("touch one"), `notifications: ${JSON.stringify(notes)}`);

  // Without a connection there is a banner; what happened meanwhile is there when it is back.
  await wire.cut();
  await page.locator(".banner").waitFor();
  await answer(asker, "touch one", "y");
  await card(asker, "touch two");
  await wire.mend();
  await page.locator(".banner").waitFor({ state: "hidden" });
  await page.locator(".cell.call", { hasText: "touch two" }).waitFor();
  same(await page.locator(".cell.call .call-title").allTextContents(), ["touch one", "touch two"], "calls, none lost and none twice");
  await page.locator(".cell.call", { hasText: "touch one" }).locator(".status", { hasText: "exit 0" }).waitFor();
  await go(page, "#/approvals");
  await card(page, "touch two");
  await answer(page, "touch two", "a");
  await page.waitForFunction(() => !document.title.startsWith("("));
  await wire.cut();
}

/** Everything can be reached by keys, and `?` says how. */
export async function keys({ page: open }) {
  const page = await open(CONSOLE_APPROVER);
  await start(page, "go");
  await idle(page);
  await page.keyboard.press("Escape");
  for (const [key, name] of [["1", "Approvals"], ["3", "Terminals"], ["4", "Audit"], ["5", "Settings"], ["2", "Conversations"]]) {
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press(key);
    await page.locator("main h1", { hasText: name }).waitFor();
  }
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.getByText("no, with a word to the model").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.locator("main textarea, main input").first().waitFor();
  await page.keyboard.press("/");
  await page.waitForFunction(() => document.activeElement?.matches("main textarea, main input"));
  await page.keyboard.type("123?");
  const written = await page.evaluate(() => document.activeElement.value);
  same(written, "123?", "what was written where keys are letters");
  // A browser takes the focus from a dialog that is gone when it draws the next time, and a person may be faster.
  const heard = await page.evaluate(() => {
    document.activeElement.blur();
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
    const button = document.activeElement;
    const dialog = button.closest("dialog");
    dialog.close();
    button.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
    return [dialog.open, document.activeElement.matches("main textarea, main input")];
  });
  same(heard, [false, true], "whether a key counts right after a dialog");
}

const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 }, small: { width: 360, height: 640 } };

/** Every page, on every screen, in both themes. With CONSOLE_SHOTS pictures of them are kept there. */
export async function pages(browser) {
  const first = await browser.page(CONSOLE_APPROVER);
  await start(first, "Make the lamp stay lit, and commit it.");
  await card(first, "git commit");
  const conversation = new URL(first.url()).hash;
  // A script is read when a conversation begins.
  copyFileSync(join(CONSOLE_WORLD, "second.jsonl"), join(CONSOLE_WORLD, "model.jsonl"));
  const asker = await browser.page(CONSOLE_APPROVER);
  await start(asker, "Keep the colour in the settings");
  await card(asker, "May these files be changed?");
  await go(first, "#/terminals");
  const process = await first.locator(".side-list a").first().getAttribute("href");
  const wrong = [];
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"]) {
      const signedOut = await browser.page(null, { viewport, colorScheme });
      await signedOut.getByRole("heading", { name: "Open the console" }).waitFor();
      await keep(signedOut, "sign-in", size, colorScheme, wrong);
      await signedOut.context().close();
      const page = await browser.page(CONSOLE_APPROVER, { viewport, colorScheme });
      const visit = async (name, hash, ready) => {
        await go(page, hash);
        await ready();
        await keep(page, name, size, colorScheme, wrong);
      };
      await visit("approvals", "#/approvals", async () => {
        await card(page, "git commit");
        await card(page, "May these files be changed?");
      });
      await page.locator(".card").nth(1).focus();
      await page.locator(".card").nth(1).evaluate((element) => element.scrollIntoView({ block: "start" }));
      await keep(page, "patch", size, colorScheme, wrong);
      await visit("conversation", conversation, async () => {
        await card(page, "git commit");
        await page.locator(".cell.call .output").first().evaluate((element) => element.closest(".cell").scrollIntoView({ block: "center" }));
      });
      await visit("conversations", "#/conversations", () => page.locator(".side-list a").first().waitFor());
      await visit("new", "#/conversations/new", async () => {
        await page.getByText("Options").click();
        await page.getByText("Do not write it down").waitFor();
      });
      await visit("terminal", process, () => page.locator(".xterm-rows").getByText("built in").first().waitFor());
      await visit("audit", "#/audit", () => page.locator(".audit-row").first().waitFor());
      await visit("settings", "#/settings", () => page.getByText("This server").waitFor());
      await page.context().close();
    }
  }
  same(wrong, [], "what looks wrong");
}

/** Pictures that the documentation shows. */
const KEPT = /^(approvals|patch|conversation|terminal|audit|settings|new|sign-in)-(desktop-light|phone-dark)$|^(approvals|audit)-desktop-dark$|^(approvals|conversation)-phone-light$/;

async function keep(page, name, size, theme, wrong) {
  await page.mouse.move(1, 1);
  for (const complaint of await looks(page)) wrong.push(`${name}, ${size}, ${theme}: ${complaint}`);
  const file = `${name}-${size}-${theme}`;
  if (!CONSOLE_SHOTS || !(KEPT.test(file) || process.env.CONSOLE_ALL_SHOTS)) return;
  mkdirSync(CONSOLE_SHOTS, { recursive: true });
  await page.screenshot({ path: join(CONSOLE_SHOTS, `${file}.png`), animations: "disabled" });
}
