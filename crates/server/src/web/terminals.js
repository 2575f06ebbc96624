// Live processes of sessions, and a terminal on one of them.

import { bytesOf, get, post, remove, Stream } from "./api.js";
import { fill, h, icon, refill, size, stepInList } from "./dom.js";
import { setPage } from "./notify.js";
import { openScreen } from "./screen.js";
import { commandLine, shortened, visible, visibleLine } from "./visible.js";

/** @typedef {import("./types.js").Process} Process */
/** @typedef {import("./types.js").Me} Me */

const LIST_EVERY_MS = 3000;
const RESIZE_AFTER_MS = 200;
/** So many bytes are sent at once; a paste can be long. */
const LARGEST_INPUT = 64 * 1024;

const STATES = { running: "running", waiting_for_input: "waits for input", exited: "ended" };

/**
 * @param {HTMLElement} root
 * @param {Me} me
 * @param {string} id
 */
export function terminalsPage(root, me, id) {
  const list = h("ul", { class: "side-list", "aria-label": "Processes" });
  const main = h("div", { class: "side-main" });
  fill(root, h("div", { class: "side-page", "data-open": id ? "one" : "list" }, h("aside", { class: "side" }, h("header", {}, h("h1", {}, "Terminals")), list), main));
  const view = id ? new Attached(main, me, id) : null;
  if (!view) fill(main, h("div", { class: "empty" }, icon("terminals"), h("h2", {}, "Live processes"), h("p", {}, "Choose a process to see its terminal. A model starts one with the tool exec_command.")));
  let stopped = false;
  /** @type {number | undefined} */
  let timer;
  const refresh = async () => {
    try {
      const { processes } = await get("/processes");
      if (stopped) return;
      drawList(list, processes, id);
      const shown = processes.find((/** @type {Process} */ process) => process.id === id);
      if (view && shown) view.head(shown);
    } catch {
      // The banner says it.
    }
    if (!stopped) timer = window.setTimeout(() => void refresh(), LIST_EVERY_MS);
  };
  void refresh();
  return {
    /** @param {KeyboardEvent} event */
    key(event) {
      if (event.key === "/" && view) {
        view.screen.terminal.focus();
        return true;
      }
      return stepInList(list, event.key);
    },
    close() {
      stopped = true;
      clearTimeout(timer);
      view?.close();
    },
  };
}

/**
 * @param {HTMLElement} list
 * @param {Process[]} processes
 * @param {string} id
 */
function drawList(list, processes, id) {
  refill(
    list,
    processes.map((process) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: `#/terminals/${encodeURIComponent(process.id)}`, "aria-current": process.id === id ? "page" : null },
          h("span", { class: `dot ${process.state}`, title: STATES[process.state] ?? process.state }),
          h("code", { class: "name untrusted" }, shortened(commandLine(process.command), 120)),
          h("span", { class: "sub" }, h("span", { class: "state" }, ended(process)), process.printed_bytes === undefined ? "" : ` · ${size(process.printed_bytes)} printed`),
        ),
      ),
    ),
    processes.length === 0 && h("li", { class: "empty-line" }, "No live processes."),
  );
}

/** @param {Process} process */
function ended(process) {
  return process.state === "exited" && process.exit_code !== undefined ? `ended with ${process.exit_code}` : (STATES[process.state] ?? visibleLine(process.state));
}

/**
 * As much of a text as fits into so many bytes, with no character cut.
 *
 * @param {string} text
 * @param {number} most
 */
export function beginning(text, most) {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(most));
  return text.slice(0, read);
}

/** A terminal on a process. */
class Attached {
  /**
   * @param {HTMLElement} main
   * @param {Me} me
   * @param {string} id
   */
  constructor(main, me, id) {
    this.id = id;
    this.mayType = me.role === "approver";
    this.title = h("h2", { class: "untrusted" }, h("code", {}, "…"));
    this.facts = h("p", { class: "conversation-facts" });
    this.state = h("span", { class: "status", role: "status" });
    this.note = h("p", { class: "form-message", role: "alert", hidden: true });
    this.killButton = h("button", { type: "button", class: "button danger small", onclick: () => void this.kill() }, icon("stop"), h("span", {}, "End it"));
    const frame = h("div", { class: "terminal-frame" });
    const inner = h("div", { class: "terminal-inner" });
    frame.append(inner);
    fill(
      main,
      h(
        "section",
        { class: "conversation" },
        h(
          "header",
          { class: "conversation-head" },
          h("a", { class: "back", href: "#/terminals" }, icon("back"), "Terminals"),
          h("div", { class: "title-row" }, this.title, this.state, this.killButton),
          this.facts,
          this.mayType ? null : h("p", { class: "read-only" }, "This token may look and not type."),
          this.note,
        ),
        frame,
      ),
    );
    this.killButton.hidden = !this.mayType;
    this.screen = openScreen(inner, { readOnly: !this.mayType });
    const { terminal } = this.screen;
    /** How much of the output the terminal has read, and how much there was when we came. */
    this.parsed = 0;
    /** @type {number | undefined} */
    this.printedBefore = undefined;
    /** What was typed and not sent. */
    this.typed = "";
    /**
     * The size that the process has not been told.
     * @type {{cols: number, rows: number} | undefined}
     */
    this.size = undefined;
    this.sending = false;
    if (this.mayType) {
      terminal.onData((text) => this.type(text));
      terminal.onResize((to) => this.resized(to));
      this.watch = new ResizeObserver(() => this.screen.fit.fit());
      this.watch.observe(inner);
      this.screen.fit.fit();
      terminal.focus();
    }
    this.stream = new Stream(
      this.path("/output"),
      {
        event: ({ id: until, type, data }) => {
          if (type === "output") terminal.write(bytesOf(JSON.parse(data)), () => (this.parsed = Number(until)));
          if (type === "exit") this.over();
        },
        refused: (error) => this.complain(error),
      },
      { endsFor: (type) => type === "exit" },
    );
  }

  /** @param {string} rest */
  path(rest) {
    return `/processes/${encodeURIComponent(this.id)}${rest}`;
  }

  close() {
    clearTimeout(this.timer);
    this.watch?.disconnect();
    this.stream.close();
    this.screen.close();
  }

  /** @param {Process} process */
  head(process) {
    this.printedBefore ??= process.printed_bytes ?? 0;
    const words = shortened(commandLine(process.command), 200);
    fill(this.title, h("code", {}, words));
    setPage(shortened(words, 60));
    const facts = [visibleLine(process.cwd), process.pid ? `pid ${process.pid}` : ""].filter(Boolean);
    fill(
      this.facts,
      facts.map((fact) => h("span", { class: "chip" }, fact)),
      process.conversation ? h("a", { class: "chip", href: `#/conversations/${encodeURIComponent(process.conversation)}` }, "conversation") : null,
    );
    this.state.className = `status ${process.state === "exited" ? (process.exit_code === 0 ? "good" : "bad") : process.state === "running" ? "working" : "waiting"}`;
    this.state.textContent = ended(process);
    if (process.state === "exited") this.killButton.hidden = true;
  }

  over() {
    this.screen.terminal.options.disableStdin = true;
    this.killButton.hidden = true;
    this.state.className = "status good";
    this.state.textContent = "ended";
  }

  /** @param {string} text */
  type(text) {
    // The screen answers no questions. If one is answered all the same: what was asked before we came is nobody's
    // question any more, and an answer now would be typed to whoever reads.
    const isAnswer = text.startsWith("\u001b");
    if (isAnswer && (this.printedBefore === undefined || this.parsed < this.printedBefore)) return;
    this.typed += text;
    void this.send();
  }

  /** One after the other, so that nothing overtakes. */
  async send() {
    if (this.sending) return;
    this.sending = true;
    try {
      while (this.typed !== "") {
        await this.tellSize();
        const text = beginning(this.typed, LARGEST_INPUT);
        this.typed = this.typed.slice(text.length);
        await post(this.path("/input"), { text });
      }
    } catch (error) {
      this.typed = "";
      this.complain(error);
    }
    this.sending = false;
  }

  /** @param {{cols: number, rows: number}} to */
  resized(to) {
    this.size = to;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.tellSize(), RESIZE_AFTER_MS);
  }

  /** Whoever types sees the size already, so the program knows it before what was typed. */
  async tellSize() {
    const to = this.size;
    if (to === undefined) return;
    this.size = undefined;
    clearTimeout(this.timer);
    try {
      await post(this.path("/resize"), { columns: to.cols, rows: to.rows });
    } catch {
      // One without a terminal has no size.
    }
  }

  async kill() {
    try {
      await remove(this.path(""));
    } catch (error) {
      this.complain(error);
    }
  }

  /** @param {unknown} error */
  complain(error) {
    this.note.hidden = false;
    this.note.textContent = visible(error instanceof Error ? error.message : String(error));
  }
}
