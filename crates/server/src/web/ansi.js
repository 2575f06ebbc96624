// Output of commands in its own cell: colours and overwritten lines as a terminal shows them, everything else that
// a terminal would obey left out. However much there is, only the beginning and the end stay on the page.
//
// Colours are reduced to sixteen of our own, with backgrounds so pale that every text on them can be read: output
// can be colourful, and cannot hide.

import { h, plural } from "./dom.js";
import { visibleLine } from "./visible.js";

/** How many lines stay of the beginning and of the end. */
const HEAD = 200;
const TAIL = 800;
/** How much of one line is shown. */
const WIDEST = 4000;

/** @typedef {{fg: number, bg: number, bold: boolean, dim: boolean, italic: boolean, under: boolean, inverse: boolean}} Pen */
/** @typedef {{text: string, style: string}} Cell one character and its class */

/** @returns {Pen} */
const plain = () => ({ fg: -1, bg: -1, bold: false, dim: false, italic: false, under: false, inverse: false });

/** The sixteen, to find the nearest of them. */
const PALETTE = [
  [0, 0, 0],
  [205, 49, 49],
  [13, 160, 90],
  [190, 150, 20],
  [36, 114, 200],
  [188, 63, 188],
  [17, 150, 180],
  [200, 200, 200],
  [110, 110, 110],
  [241, 76, 76],
  [35, 209, 139],
  [245, 245, 67],
  [59, 142, 234],
  [214, 112, 214],
  [41, 184, 219],
  [255, 255, 255],
];

/** @param {number} r @param {number} g @param {number} b */
function nearest(r, g, b) {
  let best = 0;
  let least = Infinity;
  PALETTE.forEach(([pr, pg, pb], index) => {
    const far = (r - pr) ** 2 + (g - pg) ** 2 + (b - pb) ** 2;
    if (far < least) [best, least] = [index, far];
  });
  return best;
}

/** A colour of the 256 as one of the sixteen. @param {number} index */
function reduced(index) {
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return nearest(grey, grey, grey);
  }
  const step = (/** @type {number} */ n) => (n === 0 ? 0 : 55 + n * 40);
  const cube = index - 16;
  return nearest(step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6));
}

/** What a command wrote, drawn as it comes. */
export class Output {
  constructor() {
    this.head = h("div", { class: "lines" });
    this.gap = h("div", { class: "gap", hidden: true });
    this.tail = h("div", { class: "lines" });
    this.element = h("div", { class: "output untrusted", tabindex: "0", role: "log", "aria-label": "Output", "aria-live": "off" }, this.head, this.gap, this.tail);
    /** How many lines are not on the page any more. */
    this.left = 0;
    /** @type {Cell[]} */
    this.line = [];
    this.column = 0;
    this.cut = 0;
    this.pen = plain();
    /** The beginning of a sequence whose end has not come. */
    this.open = "";
    /** Lines that are ready and not on the page. @type {{cells: Cell[], cut: number}[]} */
    this.ready = [];
    this.planned = false;
    /** @type {HTMLElement | null} */
    this.last = null;
    this.decoder = new TextDecoder();
    this.empty = true;
  }

  /** @param {Uint8Array} bytes */
  write(bytes) {
    this.text(this.decoder.decode(bytes, { stream: true }));
  }

  /** @param {string} text */
  text(text) {
    if (text === "") return;
    this.empty = false;
    let rest = this.open + text;
    this.open = "";
    while (rest !== "") {
      const escape = rest.search(/[\u001b\u009b\u009d\n\r\b\t]/);
      const run = escape < 0 ? rest : rest.slice(0, escape);
      if (run !== "") this.put(run);
      if (escape < 0) break;
      rest = rest.slice(escape);
      const used = this.control(rest);
      if (used === 0) {
        // Nobody writes a sequence of this length in good faith: what does not end is shown.
        if (rest.length > 4096) {
          this.put(rest[0]);
          rest = rest.slice(1);
          continue;
        }
        this.open = rest;
        break;
      }
      rest = rest.slice(used);
    }
    this.plan();
  }

  /** Obeys one control character or sequence, and says how long it is; 0 if its end has not come. @param {string} text */
  control(text) {
    switch (text[0]) {
      case "\n":
        this.newline();
        return 1;
      case "\r":
        this.column = 0;
        return 1;
      case "\b":
        this.column = Math.max(0, this.column - 1);
        return 1;
      case "\t":
        this.put(" ".repeat(8 - (this.column % 8)));
        return 1;
      default:
        return this.sequence(text);
    }
  }

  /** @param {string} text */
  sequence(text) {
    const csi = /^(?:\u001b\[|\u009b)([0-9:;<=>?]*)[ -/]*([@-~])/.exec(text);
    if (csi) {
      if (csi[2] === "m") this.colour(csi[1]);
      if (csi[2] === "K" && (csi[1] === "" || csi[1] === "0")) this.line.length = Math.min(this.line.length, this.column);
      if (csi[2] === "K" && csi[1] === "2") this.line = [];
      return csi[0].length;
    }
    const string = /^(?:\u001b[\]PX^_]|\u009d)[^\u0007\u001b\u009c]*(\u0007|\u001b\\|\u009c|\u001b)/.exec(text);
    if (string) {
      const cutOff = string[1] === "\u001b" && text[string[0].length] !== undefined;
      if (string[1] !== "\u001b" || cutOff) return string[0].length - (cutOff ? 1 : 0);
      return 0;
    }
    if (/^(?:\u001b\[|\u009b)[0-9:;<=>?]*[ -/]*$/.test(text) || /^(?:\u001b[\]PX^_]|\u009d)[^\u0007\u001b\u009c]*$/.test(text)) return 0;
    if (text === "\u001b") return 0;
    // Two characters, or one that means nothing here.
    return /^\u001b[ -/]*[0-~]/.exec(text)?.[0].length ?? 1;
  }

  /** @param {string} parameters */
  colour(parameters) {
    const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
    const pen = this.pen;
    for (let at = 0; at < codes.length; at += 1) {
      const code = codes[at];
      if (code === 0) Object.assign(pen, plain());
      else if (code === 1) pen.bold = true;
      else if (code === 2) pen.dim = true;
      else if (code === 3) pen.italic = true;
      else if (code === 4) pen.under = true;
      else if (code === 7) pen.inverse = true;
      else if (code === 22) pen.bold = pen.dim = false;
      else if (code === 23) pen.italic = false;
      else if (code === 24) pen.under = false;
      else if (code === 27) pen.inverse = false;
      else if (code >= 30 && code <= 37) pen.fg = code - 30;
      else if (code === 39) pen.fg = -1;
      else if (code >= 40 && code <= 47) pen.bg = code - 40;
      else if (code === 49) pen.bg = -1;
      else if (code >= 90 && code <= 97) pen.fg = code - 82;
      else if (code >= 100 && code <= 107) pen.bg = code - 92;
      else if (code === 38 || code === 48) {
        let index = -1;
        if (codes[at + 1] === 5) {
          index = reduced((codes[at + 2] ?? 0) & 255);
          at += 2;
        } else if (codes[at + 1] === 2) {
          index = nearest(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0);
          at += 4;
        }
        if (code === 38) pen.fg = index;
        else pen.bg = index;
      }
    }
  }

  style() {
    const { fg, bg, bold, dim, italic, under, inverse } = this.pen;
    const names = [];
    if (fg >= 0) names.push(`f${fg}`);
    if (bg >= 0) names.push(`b${bg}`);
    if (bold) names.push("bold");
    if (dim) names.push("dim");
    if (italic) names.push("italic");
    if (under) names.push("under");
    if (inverse) names.push("inverse");
    return names.join(" ");
  }

  /** @param {string} run */
  put(run) {
    const style = this.style();
    for (const character of run) {
      const text = visibleLine(character);
      if (this.column >= WIDEST) {
        this.cut += 1;
        continue;
      }
      while (this.line.length < this.column) this.line.push({ text: " ", style: "" });
      this.line[this.column] = { text, style };
      this.column += 1;
    }
  }

  newline() {
    this.ready.push({ cells: this.line, cut: this.cut });
    this.line = [];
    this.column = 0;
    this.cut = 0;
    // What would be taken off the page again is not put there.
    const first = HEAD - this.head.childElementCount;
    if (this.ready.length > first + 2 * TAIL) this.left += this.ready.splice(first, this.ready.length - first - TAIL).length;
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    // A page that nobody sees draws no frames.
    if (document.hidden) setTimeout(() => this.draw(), 200);
    else requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.planned = false;
    const follow = this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - 24;
    this.last?.remove();
    this.last = null;
    for (const { cells, cut } of this.ready) {
      (this.head.childElementCount < HEAD ? this.head : this.tail).append(drawn(cells, cut));
    }
    this.ready = [];
    while (this.tail.childElementCount > TAIL) {
      this.tail.firstElementChild?.remove();
      this.left += 1;
    }
    if (this.left > 0) {
      this.gap.hidden = false;
      this.gap.textContent = `${plural(this.left, "line")} left out here`;
    }
    if (this.line.length > 0) {
      this.last = drawn(this.line, this.cut);
      (this.head.childElementCount < HEAD ? this.head : this.tail).append(this.last);
    }
    if (follow) this.element.scrollTop = this.element.scrollHeight;
  }
}

/**
 * A line, as an element.
 *
 * @param {Cell[]} cells
 * @param {number} cut
 */
function drawn(cells, cut) {
  const line = h("div", { class: "line" });
  let from = 0;
  while (from < cells.length) {
    const style = cells[from].style;
    let to = from;
    let text = "";
    while (to < cells.length && cells[to].style === style) {
      text += cells[to].text;
      to += 1;
    }
    line.append(style === "" ? text : h("span", { class: style }, text));
    from = to;
  }
  if (cut > 0) line.append(h("span", { class: "left-out" }, ` […${plural(cut, "more character")}]`));
  return line;
}

/**
 * A whole output at once.
 *
 * @param {string} text
 */
export function output(text) {
  const shown = new Output();
  shown.text(text);
  shown.draw();
  return shown.element;
}
