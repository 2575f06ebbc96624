// The only way in which the console makes elements: names, attributes and text. There is no way to give it
// markup, so text from a model or a command stays text.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Attributes */

/**
 * Makes an element. `on…` are listeners, `class` and `data-…` and the rest are attributes; `true` is an attribute
 * without a value, and `null`, `undefined` and `false` are none.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  dress(element, attributes);
  element.append(...nodes(children));
  return element;
}

/**
 * The same for drawings.
 *
 * @param {string} name
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  dress(element, attributes);
  element.append(...nodes(children));
  return element;
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function dress(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  /** @type {(Node | string)[]} */
  const found = [];
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    found.push(typeof child === "number" ? String(child) : child);
  }
  return found;
}

/**
 * Puts these in the place of what an element holds.
 *
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * The same for a list of links: the one that had the focus has it again.
 *
 * @param {Element} list
 * @param {...(Child | Child[])} children
 */
export function refill(list, ...children) {
  const focused = list.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
  fill(list, ...children);
  if (focused) [...list.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
}

/** Our drawings: paths in a square of 24. */
const ICONS = {
  approvals: "M12 3 4 6v6c0 4.6 3.3 7.9 8 9 4.7-1.1 8-4.4 8-9V6l-8-3Zm-3.5 9 2.5 2.5 4.5-5",
  conversations: "M4 5h16v11H10l-5 4v-4H4V5Zm4 4h8M8 12.5h5",
  terminals: "M3 5h18v14H3V5Zm4 4 3 3-3 3m5 0h5",
  audit: "M5 4h14v16H5V4Zm3.5 4.5h7M8.5 12h7M8.5 15.5h4",
  settings: "M4 7h9m4 0h3M4 17h3m4 0h9M15 4.5v5M9 14.5v5",
  gate: "M4 20V9.5C4 6 7.5 3 12 3s8 3 8 6.5V20M9 20v-8.5a3 3 0 0 1 6 0V20M2.5 20h19",
  plus: "M12 5v14M5 12h14",
  back: "M15 5l-7 7 7 7",
  stop: "M7 7h10v10H7z",
  send: "M5 12h13m-5-6 6 6-6 6",
  copy: "M8 8h11v12H8V8Zm-3 8V4h11",
  moon: "M19 14.5A8 8 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5Z",
};

/** @typedef {keyof typeof ICONS} Icon */

/** @param {Icon} name */
export function icon(name) {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: ICONS[name] }),
  );
}

/**
 * A key, as it is drawn on buttons and in the help.
 *
 * @param {string} name
 */
export function key(name) {
  return h("kbd", {}, name);
}

/**
 * A moment as people say it, with the exact one behind it.
 *
 * @param {string | undefined} iso
 */
export function moment(iso) {
  const date = iso ? new Date(iso) : null;
  if (!date || Number.isNaN(date.getTime())) return h("span", {}, "");
  const time = h("time", { datetime: date.toISOString(), title: date.toLocaleString() });
  time.textContent = ago(date.getTime());
  return time;
}

/** @param {number} then */
function ago(then) {
  const seconds = Math.max(0, Math.round((Date.now() - then) / 1000));
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(then).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
}

/** Lets every moment on the page say how long ago it is now. */
export function refreshMoments() {
  for (const time of document.querySelectorAll("time[datetime]:not([data-fixed])")) {
    time.textContent = ago(new Date(time.getAttribute("datetime") ?? "").getTime());
  }
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** @param {number} number */
export function count(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

/**
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/**
 * Whether a key press belongs to something that a person writes into. A dialog that was closed can have the focus until
 * the browser draws the next time.
 * @param {EventTarget | null} target
 */
export function isWriting(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.matches("input, textarea, select, [contenteditable]") || target.closest(".xterm, dialog[open]") !== null;
}

/** What a person chose before, on this machine; nothing where the browser keeps nothing. */
export const choices = {
  /** @param {string} name */
  get(name) {
    try {
      return localStorage.getItem(`sandgate.${name}`);
    } catch {
      return null;
    }
  },
  /**
   * @param {string} name
   * @param {string} value
   */
  set(name, value) {
    try {
      localStorage.setItem(`sandgate.${name}`, value);
    } catch {
      // It holds until the page is closed.
    }
  },
};

/**
 * Moves the focus among the links of a list, by `j` and `k`. Whether it was one of these.
 *
 * @param {HTMLElement} list
 * @param {string} letter
 */
export function stepInList(list, letter) {
  if (letter !== "j" && letter !== "k") return false;
  const links = [...list.querySelectorAll("a")];
  const at = links.findIndex((link) => link === document.activeElement || link.getAttribute("aria-current"));
  links[Math.max(0, Math.min(links.length - 1, at + (letter === "j" ? 1 : -1)))]?.focus();
  return true;
}
