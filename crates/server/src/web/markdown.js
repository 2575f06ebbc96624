// What a model says, as paragraphs, lists, tables and code. It is read into elements and never into markup; a link
// shows where it leads, and there are no pictures, because a picture would be asked for from somewhere.

import { h } from "./dom.js";
import { visible, visibleLine } from "./visible.js";

/** So much of one answer is read as Markdown; what follows is shown as it is. */
const LONGEST = 60_000;
/** A paragraph that is longer is shown as it is, and so is code or emphasis: reading it must not take long. */
const LONGEST_PARAGRAPH = 20_000;
/** Lists and quotes inside each other. */
const DEEPEST = 8;

/** @typedef {import("./dom.js").Child} Child */

/**
 * @param {string} text
 * @returns {HTMLElement}
 */
export function markdown(text) {
  const lines = visible(text.slice(0, LONGEST).replaceAll("\r\n", "\n")).split("\n");
  const element = h("div", { class: "prose untrusted" }, blocks(lines, 0));
  if (text.length > LONGEST) element.append(h("pre", {}, visible(text.slice(LONGEST))));
  return element;
}

/**
 * @param {string[]} lines
 * @param {number} depth
 * @returns {HTMLElement[]}
 */
function blocks(lines, depth) {
  /** @type {HTMLElement[]} */
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (fence) {
      const from = at + 1;
      at = from;
      while (at < lines.length && !lines[at].trim().startsWith(fence[1])) at += 1;
      found.push(code(lines.slice(from, at).join("\n"), fence[2]));
      at += 1;
    } else if (/^ {0,3}#{1,6}\s/.test(line)) {
      const level = (/^ *(#+)/.exec(line)?.[1].length ?? 1) + 2;
      const name = /** @type {"h3" | "h4" | "h5" | "h6"} */ (`h${Math.min(level, 6)}`);
      found.push(h(name, {}, inline(line.replace(/^ *#+\s+/, "").replace(/\s+#+\s*$/, ""))));
      at += 1;
    } else if (/^ {0,3}([-*_])( *\1){2,}\s*$/.test(line)) {
      found.push(h("hr"));
      at += 1;
    } else if (depth < DEEPEST && /^ {0,3}>/.test(line)) {
      const from = at;
      while (at < lines.length && /^ {0,3}>/.test(lines[at])) at += 1;
      const inner = lines.slice(from, at).map((quoted) => quoted.replace(/^ {0,3}> ?/, ""));
      found.push(h("blockquote", {}, blocks(inner, depth + 1)));
    } else if (depth < DEEPEST && item(line)) {
      const [list, next] = listed(lines, at, depth);
      found.push(list);
      at = next;
    } else if (line.includes("|") && /^[\s|:-]+$/.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      const from = at;
      while (at < lines.length && lines[at].includes("|")) at += 1;
      found.push(table(lines.slice(from, at)));
    } else {
      const from = at;
      at += 1;
      while (at < lines.length && lines[at].trim() !== "" && !begins(lines[at])) at += 1;
      found.push(h("p", {}, inline(lines.slice(from, at).join("\n"))));
    }
  }
  return found;
}

/** @param {string} line */
function item(line) {
  return /^( *)([-*+]|\d{1,9}[.)])(\s+)(?=\S)/.exec(line);
}

/** Whether a line ends the paragraph before it. @param {string} line */
function begins(line) {
  return /^ {0,3}(`{3,}|~{3,}|#{1,6}\s|>)/.test(line) || item(line) !== null;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[HTMLElement, number]}
 */
function listed(lines, at, depth) {
  const first = /** @type {RegExpExecArray} */ (item(lines[at]));
  const ordered = /\d/.test(first[2]);
  const list = ordered ? h("ol", { start: parseInt(first[2], 10) }) : h("ul");
  const margin = first[1].length;
  while (at < lines.length) {
    const mark = item(lines[at]);
    if (!mark || mark[1].length < margin || mark[1].length > margin + 1 || /\d/.test(mark[2]) !== ordered) break;
    const inner = [lines[at].slice(mark[0].length)];
    const indent = margin + 2;
    at += 1;
    while (at < lines.length) {
      const line = lines[at];
      const spaces = line.length - line.trimStart().length;
      if (line.trim() === "") {
        const next = lines[at + 1] ?? "";
        if (next.trim() === "" || next.length - next.trimStart().length < indent) break;
      } else if (spaces < indent && (begins(line) || (lines[at - 1] ?? "").trim() === "")) {
        break;
      }
      inner.push(line.slice(Math.min(spaces, mark[0].length)));
      at += 1;
    }
    list.append(h("li", {}, tight(blocks(inner, depth + 1))));
    while (at < lines.length && lines[at].trim() === "" && item(lines[at + 1] ?? "")) at += 1;
  }
  return [list, at];
}

/** The only paragraph of an item needs no room of its own. @param {HTMLElement[]} elements @returns {Child[]} */
function tight(elements) {
  const [first, ...rest] = elements;
  return first?.tagName === "P" ? [...first.childNodes, ...rest] : elements;
}

/** @param {string[]} lines */
function table(lines) {
  const cells = (/** @type {string} */ line) => line.trim().replace(/^\||\|$/g, "").split("|");
  const [head, , ...rows] = lines;
  return h(
    "div",
    { class: "table-wrap", tabindex: "0", role: "region", "aria-label": "Table" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, cells(head).map((cell) => h("th", {}, inline(cell.trim()))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row).map((cell) => h("td", {}, inline(cell.trim())))))),
    ),
  );
}

/**
 * @param {string} text
 * @param {string} language
 */
export function code(text, language = "") {
  return h(
    "div",
    { class: "code" },
    language ? h("span", { class: "language" }, visibleLine(language)) : null,
    h("pre", { tabindex: "0" }, h("code", {}, text)),
  );
}

/** Words inside of a line: code, strong, emphasis and links. @param {string} text @returns {Child[]} */
function inline(text) {
  if (text.length > LONGEST_PARAGRAPH) return [text];
  /** @type {Child[]} */
  const found = [];
  const pattern = /(`+)([^`]|[^`][\s\S]{0,500}?[^`])\1(?!`)|(?<!\*)\*\*(?=\*?[^\s*])([\s\S]{0,500}?\S)\*\*|(?<![\w*])[*_](?=\S)([^*_\n]{0,500}?\S)[*_](?![\w*])|\[([^\]\n]{1,500})\]\((https?:\/\/[^\s)]{1,2000})\)|(https?:\/\/[^\s<>()"'`]{1,2000}[^\s<>()"'`.,;:!?])/gu;
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) found.push(text.slice(from, match.index));
    from = match.index + match[0].length;
    const [, , codeText, strong, emphasis, words, target, bare] = match;
    if (codeText !== undefined) found.push(h("code", {}, codeText.trim() || codeText));
    else if (strong !== undefined) found.push(h("strong", {}, inline(strong)));
    else if (emphasis !== undefined) found.push(h("em", {}, emphasis));
    else if (target !== undefined) found.push(...link(words, target));
    else if (bare !== undefined) found.push(...link(bare, bare));
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}

/**
 * A link and, unless its words say it, where it leads.
 *
 * @param {string} words
 * @param {string} target
 * @returns {Child[]}
 */
function link(words, target) {
  let address;
  try {
    address = new URL(target).href;
  } catch {
    return [words];
  }
  const anchor = h("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, words);
  return words === target ? [anchor] : [anchor, h("span", { class: "leads-to" }, ` (${visibleLine(address)})`)];
}
