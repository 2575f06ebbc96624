// The terminal of xterm.js under a policy that allows no inline styles.
//
// xterm.js writes three <style> elements and, for colours beyond the palette, `style` attributes. Both are inline
// styles, which `style-src 'self'` refuses. It makes all its elements with `document.createElement`, so as long as a
// terminal is open that one gives it elements whose styles go another way: the text of a <style> into a constructed
// style sheet, and a `style` attribute into the element's CSSOM. No text of a page can reach either.

import { Terminal } from "./vendor/xterm.mjs";
import { FitAddon } from "./vendor/addon-fit.mjs";

/** @typedef {{terminal: Terminal, fit: FitAddon, close: () => void}} Screen */

/** The style sheets of the open terminal. @type {CSSStyleSheet[]} */
let sheets = [];

/** Stands where a <style> would; even an empty one is refused. */
function styleElement() {
  const sheet = new CSSStyleSheet();
  sheets.push(sheet);
  document.adoptedStyleSheets.push(sheet);
  const element = plainElement("span");
  element.hidden = true;
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (/** @type {string} */ text) => sheet.replaceSync(text),
  });
  return element;
}

function spanElement() {
  const element = plainElement("span");
  Object.defineProperty(element, "setAttribute", {
    value: (/** @type {string} */ name, /** @type {string} */ value) => {
      if (name === "style") element.style.cssText = value;
      else Element.prototype.setAttribute.call(element, name, value);
    },
  });
  return element;
}

/** @param {string} name @returns {HTMLElement} */
function plainElement(name) {
  return Document.prototype.createElement.call(document, name);
}

function redirectStyles() {
  document.createElement = /** @type {any} */ (
    (/** @type {string} */ name) => (name === "style" ? styleElement() : name === "span" ? spanElement() : plainElement(name))
  );
}

function restoreStyles() {
  Reflect.deleteProperty(document, "createElement");
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
  sheets = [];
}

/** The page's colours, as they are now. */
function theme() {
  const probe = document.body.appendChild(document.createElement("span"));
  const colour = (/** @type {string} */ name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
  /** @type {Record<string, string>} */
  const found = {
    background: colour("--terminal"),
    foreground: colour("--terminal-text"),
    cursor: colour("--accent"),
    cursorAccent: colour("--terminal"),
    selectionBackground: colour("--selection"),
  };
  names.forEach((name, index) => {
    found[name] = colour(`--ansi-${index}`);
    found[`bright${name[0].toUpperCase()}${name.slice(1)}`] = colour(`--ansi-${index + 8}`);
  });
  probe.remove();
  return found;
}

/**
 * Lets no program ask the terminal anything. An answer comes out where keys do, so it would be typed as if the person
 * had: to whoever reads by then.
 *
 * @param {Terminal} terminal
 */
function answerNothing(terminal) {
  const { parser } = terminal;
  const taken = () => true;
  // What it is, how it is, where its cursor stands, how large it is, which modes and settings it has.
  for (const prefix of ["", "?", ">", "="]) {
    parser.registerCsiHandler({ prefix, final: "c" }, taken);
    parser.registerCsiHandler({ prefix, final: "n" }, taken);
    parser.registerCsiHandler({ prefix, intermediates: "$", final: "p" }, taken);
    parser.registerCsiHandler({ prefix, final: "q" }, taken);
  }
  parser.registerCsiHandler({ final: "t" }, taken);
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, taken);
  // Its colours, which a program may set.
  for (const colours of [4, 10, 11, 12]) parser.registerOscHandler(colours, (words) => words.includes("?"));
}

/**
 * Opens a terminal in an element. There is one at a time.
 *
 * @param {HTMLElement} parent
 * @param {{readOnly: boolean}} options
 * @returns {Screen}
 */
export function openScreen(parent, options) {
  const terminal = new Terminal({
    scrollback: 5000,
    fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace',
    fontSize: 13,
    theme: theme(),
    disableStdin: options.readOnly,
    cursorBlink: false,
    screenReaderMode: true,
    // What a program calls a link leads nowhere.
    linkHandler: { activate() {} },
    minimumContrastRatio: 4.5,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  answerNothing(terminal);
  redirectStyles();
  terminal.open(parent);
  const repaint = () => (terminal.options.theme = theme());
  window.addEventListener("themechange", repaint);
  return {
    terminal,
    fit,
    close() {
      window.removeEventListener("themechange", repaint);
      terminal.dispose();
      restoreStyles();
    },
  };
}
