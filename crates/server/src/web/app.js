// The console: who you are, which page is shown, and the keys that hold everywhere.

import { approvalsPage } from "./approvals.js";
import { auditPage } from "./audit.js";
import { findToken, forgetToken, get, Refused, takeToken, watchConnection } from "./api.js";
import { conversationsPage } from "./conversations.js";
import { choices, fill, h, icon, isWriting, key, refreshMoments } from "./dom.js";
import { drawBadge, setPage } from "./notify.js";
import { areQuestionsKnown, followQuestions, leaveQuestions, openQuestions, watchQuestions } from "./questions.js";
import { applyTheme, settingsPage } from "./settings.js";
import { terminalsPage } from "./terminals.js";
import { shortened, visible, visibleLine } from "./visible.js";

/** @typedef {import("./types.js").Me} Me */
/** @typedef {{key: (event: KeyboardEvent) => boolean, close: () => void}} View */
/** @typedef {import("./dom.js").Icon} PageName */

const PAGES = /** @type {[PageName, string][]} */ ([
  ["approvals", "Approvals"],
  ["conversations", "Conversations"],
  ["terminals", "Terminals"],
  ["audit", "Audit"],
  ["settings", "Settings"],
]);

/** The keys that the help shows. */
const KEYS = /** @type {[string, [string, string][]][]} */ ([
  ["Everywhere", [["1 – 5", "go to a page"], ["j k", "the next or the one before"], ["/", "write or search"], ["Esc", "leave what you write in"], ["?", "these keys"]]],
  ["On a question that has the focus", [["y", "yes, once"], ["s", "yes, for the session"], ["g", "only what was blocked, once"], ["G", "only what was blocked, for the session"], ["r", "yes, always"], ["n", "no, with a word to the model"], ["a", "no, and stop"], ["e", "explain"]]],
  ["In a conversation", [["Enter", "send, or put it in line"], ["Shift Enter", "a new line"], ["Esc", "interrupt the turn"]]],
]);

/** @type {Me | null} */
let me = null;
/** @type {View | null} */
let view = null;
/** @type {(() => void) | null} */
let uncount = null;
const main = h("main", { id: "main", tabindex: "-1" });
const banner = h("div", { class: "banner", role: "status", hidden: true }, "The connection to the server is lost. Trying again…");
const help = h("dialog", { class: "help", "aria-label": "Keys" });

function begin() {
  applyTheme(choices.get("theme") ?? "system");
  drawBadge(0);
  window.addEventListener("hashchange", () => {
    // Somebody opened the console's address again, in this tab.
    if (/^#(code|token)=/.test(location.hash)) void arrive();
    else if (me) route();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("themechange")));
  document.addEventListener("keydown", keys);
  setInterval(refreshMoments, 15_000);
  watchConnection((down) => (banner.hidden = !down));
  void arrive();
}

/** Goes in with what the address has, or asks for it. */
async function arrive() {
  try {
    if (await findToken()) await enter();
    else signIn("");
  } catch (error) {
    signIn(error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} message */
function signIn(message) {
  leave();
  setPage("Sign in");
  const field = h("input", { type: "password", name: "token", required: true, autocomplete: "off", spellcheck: "false", placeholder: "Address or token", "aria-label": "Token", maxlength: 500 });
  const form = h(
    "form",
    {
      class: "sign-in",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        takeToken(field.value).then(enter, (error) => signIn(error instanceof Error ? error.message : String(error)));
      },
    },
    h("div", { class: "brand large" }, icon("gate"), h("span", {}, "Sandgate")),
    h("h1", {}, "Open the console"),
    h("p", {}, "Run ", h("code", {}, "sandgate console"), " in a terminal and open the address that it prints, or paste it here."),
    field,
    message ? h("p", { class: "form-message", role: "alert" }, visible(message)) : null,
    h("button", { type: "submit", class: "button primary" }, "Open"),
    h("p", { class: "fine" }, "You stay signed in until this page is closed or loaded again. An address opens the console once."),
  );
  fill(document.body, h("div", { class: "sign-in-page" }, form), live());
  field.focus();
}

function live() {
  return h("div", { id: "live", class: "visually-hidden", "aria-live": "assertive" });
}

function leave() {
  view?.close();
  view = null;
  me = null;
  leaveQuestions();
}

async function enter() {
  leave();
  try {
    me = await get("/settings/me");
  } catch (error) {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) forgetToken();
    signIn(error instanceof Refused && error.status === 401 ? "The server does not know this token." : error instanceof Error ? error.message : String(error));
    return;
  }
  shell(/** @type {Me} */ (me));
  followQuestions(() => signIn("The server does not know this token any more."));
  let chosen = location.hash.startsWith("#/");
  route();
  const stop = watchQuestions(() => {
    // Whoever opens the console sees first what waits; later nobody is taken from where they are.
    if (!chosen && areQuestionsKnown()) location.hash = openQuestions().length > 0 ? "#/approvals" : "#/conversations";
    chosen = true;
    stop();
  });
}

/** @param {Me} who */
function shell(who) {
  const number = h("span", { class: "number", hidden: true });
  const links = PAGES.map(([name, title], index) =>
    h("a", { href: `#/${name}`, "data-page": name, "aria-keyshortcuts": String(index + 1), title: `${title} (${index + 1})` }, icon(name), h("span", { class: "label" }, title), name === "approvals" ? number : null),
  );
  const workspace = visibleLine(who.workspace ?? "");
  fill(
    document.body,
    h("a", { class: "skip", href: "#main", onclick: (/** @type {Event} */ event) => { event.preventDefault(); main.focus(); } }, "Skip to the page"),
    h(
      "div",
      { class: "shell" },
      h(
        "nav",
        { class: "nav", "aria-label": "Pages" },
        h("div", { class: "brand" }, icon("gate"), h("span", {}, "Sandgate")),
        h("div", { class: "links" }, links),
        h("div", { class: "nav-foot" }, h("span", { class: `role ${who.role}` }, who.role), h("span", { class: "path", title: workspace }, shortened(workspace, 200)), h("button", { type: "button", class: "link", onclick: showHelp }, "Keys ", key("?"))),
      ),
      h("div", { class: "stage" }, banner, main),
    ),
    help,
    live(),
  );
  const count = () => {
    const waiting = openQuestions().length;
    number.hidden = waiting === 0;
    number.textContent = String(waiting);
    number.setAttribute("aria-label", `${waiting} waiting`);
  };
  uncount?.();
  uncount = watchQuestions(count);
}

function route() {
  const who = me;
  if (!who) return;
  const [, name = "", id = ""] = location.hash.split("/");
  const page = PAGES.find(([known]) => known === name)?.[0] ?? "approvals";
  view?.close();
  view = null;
  main.scrollTop = 0;
  setPage(PAGES.find(([known]) => known === page)?.[1] ?? "");
  for (const link of document.querySelectorAll(".nav a")) {
    if (link.getAttribute("data-page") === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.dataset.page = page;
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  const one = decode(id);
  if (page === "approvals") view = approvalsPage(main, who);
  else if (page === "conversations") view = conversationsPage(main, who, one);
  else if (page === "terminals") view = terminalsPage(main, who, one);
  else if (page === "audit") view = auditPage(main, who);
  else view = settingsPage(main, who, { signOut: () => { forgetToken(); signIn(""); }, help: showHelp });
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** @param {KeyboardEvent} event */
function keys(event) {
  if (!me || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  if (isWriting(event.target)) {
    if (event.key === "Escape" && event.target instanceof HTMLElement && event.target.closest(".xterm, dialog[open]") === null) event.target.blur();
    return;
  }
  const page = PAGES[Number(event.key) - 1];
  if (event.key === "?") showHelp();
  else if (page) location.hash = `#/${page[0]}`;
  else if (!view?.key(event)) return;
  event.preventDefault();
}

function showHelp() {
  fill(
    help,
    h("header", {}, h("h2", {}, "Keys"), h("button", { type: "button", class: "button small", onclick: () => help.close() }, "Close", key("Esc"))),
    h("div", { class: "help-groups" }, KEYS.map(([title, list]) => h("section", {}, h("h3", {}, title), h("dl", {}, list.map(([keyName, meaning]) => [h("dt", {}, key(keyName)), h("dd", {}, meaning)]).flat())))),
  );
  help.showModal();
}

begin();
