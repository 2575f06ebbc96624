// What the console knows of its server, and what the person wants of the console.

import { choices, fill, h } from "./dom.js";
import { askForNotifications, beep, notificationState } from "./notify.js";
import { visible, visibleLine } from "./visible.js";

/** @typedef {import("./types.js").Me} Me */

/** Light, dark, or as the system has it. @param {string} wanted */
export function applyTheme(wanted) {
  if (wanted === "light" || wanted === "dark") document.documentElement.dataset.theme = wanted;
  else delete document.documentElement.dataset.theme;
  window.dispatchEvent(new Event("themechange"));
}

/**
 * @param {HTMLElement} root
 * @param {Me} me
 * @param {{signOut: () => void, help: () => void}} does
 */
export function settingsPage(root, me, does) {
  const theme = choices.get("theme") ?? "system";
  const themes = h(
    "fieldset",
    { class: "segments" },
    h("legend", {}, "Appearance"),
    ["system", "light", "dark"].map((name) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name: "theme",
          value: name,
          checked: theme === name,
          onchange: () => {
            choices.set("theme", name);
            applyTheme(name);
          },
        }),
        h("span", {}, name[0].toUpperCase() + name.slice(1)),
      ),
    ),
  );
  const bell = h("div", { class: "setting" });
  const drawBell = () => {
    const state = notificationState();
    const words = { granted: "Allowed. You are told when a question waits and this tab is out of sight.", denied: "The browser refuses them for this page.", unsupported: "This browser has none.", default: "Be told when a question waits and this tab is out of sight." };
    fill(bell, h("div", {}, h("h3", {}, "Notifications"), h("p", {}, words[state])), state === "default" ? h("button", { type: "button", class: "button small", onclick: () => void askForNotifications().then(drawBell) }, "Allow") : null);
  };
  drawBell();
  const sound = h("input", {
    type: "checkbox",
    role: "switch",
    id: "sound",
    checked: choices.get("sound") === "on",
    onchange: () => {
      choices.set("sound", sound.checked ? "on" : "off");
      if (sound.checked) beep();
    },
  });
  fill(
    root,
    h(
      "div",
      { class: "page narrow" },
      h("h1", {}, "Settings"),
      h("section", { class: "panel" }, themes, bell, h("div", { class: "setting" }, h("label", { for: "sound" }, h("h3", {}, "Sound"), h("p", {}, "A short tone when a question comes.")), sound), h("div", { class: "setting" }, h("div", {}, h("h3", {}, "Keyboard"), h("p", {}, "Everything can be done without a mouse.")), h("button", { type: "button", class: "button small", onclick: does.help }, "Show keys", h("kbd", {}, "?")))),
      h("h2", {}, "This server"),
      h(
        "section",
        { class: "panel" },
        h(
          "dl",
          { class: "facts" },
          h("dt", {}, "role"),
          h("dd", {}, me.role === "approver" ? "approver: may answer questions, type into terminals and read the audit" : "requester: may ask, and not answer"),
          h("dt", {}, "version"),
          h("dd", {}, visibleLine(me.version ?? "")),
          h("dt", {}, "workspace"),
          h("dd", {}, h("code", { class: "path" }, visibleLine(me.workspace ?? ""))),
          sandbox(me.sandbox),
        ),
        h("div", { class: "form-actions" }, h("button", { type: "button", class: "button", onclick: does.signOut }, "Forget the token")),
      ),
      h("h2", {}, "Made with"),
      h("section", { class: "panel small" }, h("p", {}, "The terminals are drawn by xterm.js 6.0.0 (MIT licence), which is part of this program. ", h("a", { href: "assets/vendor/LICENSE-xterm.txt" }, "Licence"))),
    ),
  );
  return { key: () => false, close() {} };
}

/** @param {any} status */
function sandbox(status) {
  if (!status) return [];
  if (typeof status !== "object") return [h("dt", {}, "sandbox"), h("dd", {}, visible(String(status)))];
  const missing = Array.isArray(status.missing) ? status.missing : [];
  const kinds = /** @type {Record<string, string>} */ ({ linux_seccomp: "Linux: namespaces, Landlock and seccomp", macos_seatbelt: "macOS: Seatbelt", windows_restricted_token: "Windows: a restricted token", none: "nothing confines commands here" });
  const parts = [
    status.namespaces === undefined ? "" : `namespaces ${status.namespaces ? "yes" : "no"}`,
    status.landlock_abi === undefined ? "" : `Landlock ${status.landlock_abi || "no"}`,
    status.seccomp === undefined ? "" : `seccomp ${status.seccomp ? "yes" : "no"}`,
    status.supervisor === undefined ? "" : `evidence of denials ${status.supervisor ? "yes" : "no"}`,
  ].filter(Boolean);
  const none = status.sandbox === "none";
  return [
    h("dt", {}, "sandbox"),
    h("dd", {}, h("span", { class: `status ${none ? "bad" : missing.length ? "waiting" : "good"}` }, none ? "none" : missing.length ? "partly enforced" : "fully enforced"), " ", kinds[status.sandbox] ?? visibleLine(String(status.sandbox ?? "")), parts.length ? h("div", { class: "sub" }, parts.join(" · ")) : null, missing.length ? h("ul", {}, missing.map((/** @type {any} */ text) => h("li", {}, visible(String(text))))) : null),
  ];
}
