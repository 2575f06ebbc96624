// Changes of files: a list of them, and each as a unified diff or side by side.

import { choices, h, plural } from "./dom.js";
import { visibleLine } from "./visible.js";

/** @typedef {import("./types.js").PatchChange} PatchChange */
/** @typedef {{kind: "same" | "add" | "remove" | "hunk" | "note", text: string, before: number, after: number}} Row */

/** So many lines of one file, and of all files together, are on the page until somebody asks for more. */
const MOST_OF_ONE = 400;
const MOST_OF_ALL = 2000;
const WIDEST = 2000;

const LETTER = { add: "A", delete: "D", update: "M" };
const WORD = { add: "added", delete: "removed", update: "changed" };

/**
 * The lines of a unified diff of one file, with their numbers before and after.
 *
 * @param {string} text
 * @returns {Row[]}
 */
export function rows(text) {
  /** @type {Row[]} */
  const found = [];
  let before = 1;
  let after = 1;
  let inHunk = false;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      inHunk = true;
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      found.push({ kind: "hunk", text: line, before: 0, after: 0 });
    } else if (!inHunk && /^(--- |\+\+\+ |diff |index |new file|deleted file|similarity|rename )/.test(line)) {
      continue;
    } else if (line.startsWith("+")) {
      found.push({ kind: "add", text: line.slice(1), before: 0, after });
      after += 1;
    } else if (line.startsWith("-")) {
      found.push({ kind: "remove", text: line.slice(1), before, after: 0 });
      before += 1;
    } else if (line.startsWith("\\")) {
      found.push({ kind: "note", text: line.slice(1).trim(), before: 0, after: 0 });
    } else {
      found.push({ kind: "same", text: line.startsWith(" ") ? line.slice(1) : line, before, after });
      before += 1;
      after += 1;
    }
  }
  return found;
}

/** @param {string} text */
function lineText(text) {
  const shown = visibleLine(text.replaceAll("\t", "    ").slice(0, WIDEST));
  return text.length > WIDEST ? `${shown} […${text.length - WIDEST} more characters]` : shown || " ";
}

/**
 * @param {Row} row
 * @param {number} number
 * @param {string} side
 */
function cells(row, number, side) {
  const sign = row.kind === "add" ? "+" : row.kind === "remove" ? "−" : "";
  return [
    h("td", { class: `number ${side}`, "data-number": number || "" }),
    h("td", { class: `sign ${row.kind}` }, sign),
    h("td", { class: `text ${row.kind}` }, lineText(row.text)),
  ];
}

const NOTHING = () => [h("td", { class: "number none" }), h("td", { class: "sign none" }), h("td", { class: "text none" })];

/** @param {Row} row @param {number} span */
function across(row, span) {
  return h("tr", { class: row.kind }, h("td", { colspan: span }, lineText(row.text)));
}

/** @param {Row[]} found */
function unified(found) {
  return found.map((row) => {
    if (row.kind === "hunk" || row.kind === "note") return across(row, 4);
    const [number, sign, text] = cells(row, row.after, "after");
    return h("tr", { class: row.kind }, h("td", { class: "number", "data-number": row.before || "" }), number, sign, text);
  });
}

/** @param {Row[]} found */
function sideBySide(found) {
  /** @type {HTMLElement[]} */
  const drawn = [];
  let at = 0;
  while (at < found.length) {
    const row = found[at];
    if (row.kind === "hunk" || row.kind === "note") {
      drawn.push(across(row, 6));
      at += 1;
    } else if (row.kind === "same") {
      drawn.push(h("tr", { class: "same" }, cells(row, row.before, "before"), cells(row, row.after, "after")));
      at += 1;
    } else {
      /** @type {Row[]} */
      const removed = [];
      /** @type {Row[]} */
      const added = [];
      for (; at < found.length && (found[at].kind === "remove" || found[at].kind === "add"); at += 1) {
        (found[at].kind === "remove" ? removed : added).push(found[at]);
      }
      for (let pair = 0; pair < Math.max(removed.length, added.length); pair += 1) {
        const left = removed[pair] ? cells(removed[pair], removed[pair].before, "before") : NOTHING();
        const right = added[pair] ? cells(added[pair], added[pair].after, "after") : NOTHING();
        drawn.push(h("tr", {}, left, right));
      }
    }
  }
  return drawn;
}

/**
 * @param {PatchChange} change
 * @param {boolean} split
 * @param {number} most
 */
function file(change, split, most) {
  const found = rows(change.diff);
  const added = found.filter((row) => row.kind === "add").length;
  const removed = found.filter((row) => row.kind === "remove").length;
  const body = h("tbody");
  const show = (/** @type {number} */ limit) => {
    const shown = found.slice(0, limit);
    body.replaceChildren(...(split ? sideBySide(shown) : unified(shown)));
    if (found.length > limit) {
      const more = h("button", { type: "button", class: "link", onclick: () => show(Infinity) }, `Show ${plural(found.length - limit, "more line")}`);
      body.append(h("tr", { class: "more" }, h("td", { colspan: split ? 6 : 4 }, more)));
    }
  };
  show(Math.min(most, MOST_OF_ONE));
  return h(
    "section",
    { class: "file" },
    h(
      "header",
      {},
      letter(change),
      h("span", { class: "path" }, names(change)),
      h("span", { class: "stat" }, h("span", { class: "plus" }, `+${added}`), " ", h("span", { class: "minus" }, `−${removed}`)),
    ),
    h("div", { class: "rows", tabindex: "0", role: "region", "aria-label": "Changes" }, h("table", { class: split ? "split" : "unified" }, columns(split), body)),
  );
}

/** @param {boolean} split */
function columns(split) {
  const names = split ? ["number", "sign", "text", "number", "sign", "text"] : ["number", "number", "sign", "text"];
  return h("colgroup", {}, names.map((name) => h("col", { class: name })));
}

/** @param {PatchChange} change */
function letter(change) {
  return h("span", { class: `letter ${change.kind}`, title: WORD[change.kind] ?? change.kind }, LETTER[change.kind] ?? "?");
}

/** All that a change writes to. @param {PatchChange} change */
export function names(change) {
  const path = visibleLine(change.path);
  return change.moved_to ? `${path} → ${visibleLine(change.moved_to)}` : path;
}

const WIDE = "(min-width: 1100px)";

/**
 * All changes of a patch: every file by its name, then what changes in each.
 *
 * @param {PatchChange[]} changes
 */
export function patch(changes) {
  const wide = matchMedia(WIDE);
  const files = h("div", { class: "files" });
  const draw = () => {
    if (!files.isConnected && files.hasChildNodes()) return;
    const split = wide.matches && choices.get("diff") !== "unified";
    let left = MOST_OF_ALL;
    files.replaceChildren(
      ...changes.map((change) => {
        const drawn = file(change, split, Math.max(left, 0));
        left -= Math.min(rows(change.diff).length, MOST_OF_ONE);
        return drawn;
      }),
    );
    toggle.textContent = split ? "Unified" : "Side by side";
  };
  const toggle = h("button", {
    type: "button",
    class: "link wide-only",
    onclick: () => {
      choices.set("diff", choices.get("diff") === "unified" ? "split" : "unified");
      draw();
    },
  });
  wide.addEventListener("change", draw);
  draw();
  return h(
    "div",
    { class: "patch untrusted" },
    h(
      "div",
      { class: "patch-head" },
      changes.length > 1 && h("ul", { class: "file-list", "aria-label": "Files" }, changes.map((change) => h("li", {}, letter(change), h("span", { class: "path" }, names(change))))),
      toggle,
    ),
    files,
  );
}

/**
 * A unified diff of several files, such as all that a turn changed.
 *
 * @param {string} text
 */
export function unifiedDiff(text) {
  /** @type {PatchChange[]} */
  const changes = [];
  for (const part of text.split(/^(?=diff --git )/m).filter((piece) => piece.trim() !== "")) {
    const from = /^--- (?:a\/)?(.*)$/m.exec(part)?.[1] ?? "/dev/null";
    const to = /^\+\+\+ (?:b\/)?(.*)$/m.exec(part)?.[1] ?? "/dev/null";
    const named = /^diff --git a\/(.*) b\/(.*)$/m.exec(part);
    const added = from === "/dev/null" || /^new file/m.test(part);
    const gone = to === "/dev/null" && /^deleted file/m.test(part);
    const before = named?.[1] ?? from;
    const after = named?.[2] ?? to;
    changes.push({
      path: gone ? before : added ? after : before,
      kind: gone ? "delete" : added ? "add" : "update",
      moved_to: !gone && !added && before !== after ? after : undefined,
      diff: part,
    });
  }
  return patch(changes);
}
