// Conversations: those there are, a new one, and one of them as it goes on.

import { get, post, remove, Refused, Stream } from "./api.js";
import { Queue } from "./approvals.js";
import { count, fill, h, icon, key, moment, plural, refill, stepInList } from "./dom.js";
import { setPage } from "./notify.js";
import { Transcript } from "./transcript.js";
import { shortened, visible, visibleLine } from "./visible.js";

/** @typedef {import("./types.js").Conversation} Conversation */
/** @typedef {import("./types.js").Me} Me */

const LIST_EVERY_MS = 5000;
const PAGE = 50;
/** So many events of what was before are read. */
const MOST_REPLAYED = 20_000;
const LONGEST_MESSAGE = 500_000;

/** Messages that wait until the turn is over, for each conversation. @type {Map<string, string[]>} */
const waiting = new Map();
/** What was begun to be written. @type {Map<string, string>} */
const drafts = new Map();

/**
 * @param {HTMLElement} root
 * @param {Me} me
 * @param {string} id
 */
export function conversationsPage(root, me, id) {
  const list = h("ul", { class: "side-list", "aria-label": "Conversations" });
  const main = h("div", { class: "side-main" });
  fill(
    root,
    h(
      "div",
      { class: "side-page", "data-open": id ? "one" : "list" },
      h("aside", { class: "side" }, h("header", {}, h("h1", {}, "Conversations"), h("a", { class: "button small", href: "#/conversations/new" }, icon("plus"), "New")), list),
      main,
    ),
  );
  let stopped = false;
  /** @type {number | undefined} */
  let timer;
  /** Those that the person asked for beyond the first page. @type {Conversation[]} */
  let older = [];
  const more = async (/** @type {Conversation} */ last) => {
    const { conversations } = await get(`/conversations?limit=${PAGE}&before=${encodeURIComponent(last.id)}`);
    older = [...older, ...conversations];
    await refresh();
  };
  const refresh = async () => {
    clearTimeout(timer);
    try {
      const { conversations } = await get(`/conversations?limit=${PAGE}`);
      const last = older.at(-1) ?? conversations.at(-1);
      // One page of a list is full as long as there may be another.
      const mayBeMore = last?.state === "recorded" && (older.length || conversations.length) % PAGE === 0;
      if (!stopped) drawList(list, [...conversations, ...older], id);
      if (!stopped && mayBeMore) list.append(h("li", {}, h("button", { type: "button", class: "link older", onclick: () => void more(/** @type {Conversation} */ (last)) }, "Show older")));
    } catch (error) {
      if (!stopped && !list.hasChildNodes()) fill(list, h("li", { class: "empty-line" }, visible(String(error instanceof Error ? error.message : error))));
    }
    if (!stopped) timer = window.setTimeout(() => (document.hidden ? later() : void refresh()), LIST_EVERY_MS);
  };
  const later = () => (timer = window.setTimeout(() => void refresh(), LIST_EVERY_MS));
  void refresh();
  const view = id && id !== "new" ? new One(main, me, id, refresh) : start(main, me);
  return {
    /** @param {KeyboardEvent} event */
    key(event) {
      if (event.key === "/") {
        view.focus();
        return true;
      }
      return stepInList(list, event.key);
    },
    close() {
      stopped = true;
      clearTimeout(timer);
      view.close();
    },
  };
}

/**
 * @param {HTMLElement} list
 * @param {Conversation[]} conversations
 * @param {string} id
 */
function drawList(list, conversations, id) {
  refill(
    list,
    conversations.map((one) => {
      const href = `#/conversations/${encodeURIComponent(one.id)}`;
      return h(
        "li",
        {},
        h(
          "a",
          { href, "aria-current": one.id === id ? "page" : null },
          h("span", { class: `dot ${one.state}`, title: one.state }),
          h("span", { class: "name" }, shortened(visibleLine(one.title || "Untitled"), 120)),
          h("span", { class: "sub" }, h("span", { class: "state" }, one.state), one.model && one.model !== "none" ? ` · ${visibleLine(one.model)}` : "", " · ", moment(one.started)),
        ),
      );
    }),
    conversations.length === 0 && h("li", { class: "empty-line" }, "No conversations yet."),
  );
}

/**
 * @param {string} label
 * @param {string} name
 * @param {[string, string][]} options
 */
function choice(label, name, options) {
  return h("label", { class: "field" }, h("span", {}, label), h("select", { name }, options.map(([value, words]) => h("option", { value }, words))));
}

/**
 * @param {HTMLElement} main
 * @param {Me} me
 */
function start(main, me) {
  const message = h("p", { class: "form-message", role: "alert", hidden: true });
  const text = h("textarea", { name: "input", rows: "4", required: true, maxlength: LONGEST_MESSAGE, placeholder: "What should be done?", "aria-label": "What should be done?" });
  const button = h("button", { type: "submit", class: "button primary" }, "Start", key("Ctrl Enter"));
  const form = h(
    "form",
    {
      class: "start",
      onsubmit: async (/** @type {Event} */ event) => {
        event.preventDefault();
        if (button.disabled || text.value.trim() === "") return;
        button.disabled = true;
        message.hidden = true;
        const data = new FormData(form);
        /** @type {Record<string, any>} */
        const wanted = {};
        for (const name of ["cwd", "model", "provider", "approval_policy", "sandbox_mode"]) {
          const value = String(data.get(name) ?? "").trim();
          if (value) wanted[name] = value;
        }
        if (data.get("ephemeral")) wanted.ephemeral = true;
        try {
          const made = await post("/conversations", wanted);
          waiting.set(made.id, [text.value]);
          location.hash = `#/conversations/${encodeURIComponent(made.id)}`;
        } catch (error) {
          button.disabled = false;
          message.hidden = false;
          message.textContent = visible(error instanceof Error ? error.message : String(error));
        }
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
      },
    },
    h("a", { class: "back", href: "#/conversations" }, icon("back"), "Conversations"),
    h("h2", {}, "A new conversation"),
    h("p", { class: "lead" }, "It works in ", h("code", { class: "path" }, visibleLine(me.workspace ?? "")), ". What you choose here can make your settings stricter, and never looser."),
    text,
    h(
      "details",
      { class: "options" },
      h("summary", {}, "Options"),
      h(
        "div",
        { class: "fields" },
        h("label", { class: "field" }, h("span", {}, "Directory"), h("input", { name: "cwd", type: "text", autocomplete: "off", spellcheck: "false", placeholder: me.workspace ?? "" })),
        h("label", { class: "field" }, h("span", {}, "Model"), h("input", { name: "model", type: "text", autocomplete: "off", spellcheck: "false", placeholder: "as the settings say" })),
        choice("When a person is asked", "approval_policy", [["", "as the settings say"], ["untrusted", "untrusted"], ["on-failure", "on-failure"], ["on-request", "on-request"], ["never", "never"]]),
        choice("What commands may touch", "sandbox_mode", [["", "as the settings say"], ["read-only", "read-only"], ["workspace-write", "workspace-write"], ["danger-full-access", "danger-full-access"]]),
        h("label", { class: "check" }, h("input", { name: "ephemeral", type: "checkbox" }), h("span", {}, "Do not write it down")),
      ),
    ),
    message,
    h("div", { class: "form-actions" }, button),
  );
  fill(main, form);
  return { close() {}, focus: () => text.focus() };
}

/** One conversation. */
class One {
  /**
   * @param {HTMLElement} main
   * @param {Me} me
   * @param {string} id
   * @param {() => void} listChanged
   */
  constructor(main, me, id, listChanged) {
    this.id = id;
    this.listChanged = listChanged;
    this.closed = false;
    this.working = false;
    /** @type {Stream | null} */
    this.stream = null;
    this.title = h("h2", { class: "untrusted" }, "…");
    this.facts = h("p", { class: "conversation-facts" });
    this.meter = h("div", { class: "meter", hidden: true });
    this.state = h("span", { class: "status", role: "status" });
    this.endButton = h("button", { type: "button", class: "link", hidden: true, title: "Ends its session and what it started; what was said stays written down", onclick: () => void this.end() }, "Close");
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Conversation" });
    this.transcript = new Transcript({
      changed: () => this.follow(),
      usage: (event) => this.usage(event),
      working: (working) => this.work(working),
    });
    this.queue = new Queue({ mayAnswer: me.role === "approver", only: (asked) => asked.conversation === id, changed: (number) => this.drawState(number) });
    this.note = h("p", { class: "form-message", role: "alert", hidden: true });
    this.queued = h("ul", { class: "queued", "aria-label": "Messages that wait" });
    this.text = h("textarea", { rows: "1", "aria-label": "Message", placeholder: "Say something", maxlength: LONGEST_MESSAGE });
    this.text.value = drafts.get(id) ?? "";
    this.button = h("button", { type: "submit", class: "button primary", "aria-label": "Send" }, icon("send"));
    this.stopButton = h("button", { type: "button", class: "button danger", hidden: true, onclick: () => void this.interrupt() }, icon("stop"), h("span", {}, "Interrupt"), key("Esc"));
    this.composer = h(
      "form",
      {
        class: "composer",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.submit();
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
        oninput: () => this.grow(),
      },
      this.queued,
      this.note,
      h("div", { class: "composer-row" }, this.text, this.stopButton, this.button),
    );
    fill(
      main,
      h(
        "section",
        { class: "conversation" },
        h(
          "header",
          { class: "conversation-head" },
          h("a", { class: "back", href: "#/conversations" }, icon("back"), "Conversations"),
          h("div", { class: "title-row" }, this.title, this.state, this.endButton),
          h("div", { class: "facts-row" }, this.facts, this.meter),
        ),
        this.scroller,
        this.composer,
      ),
    );
    this.scroller.append(this.transcript.element, this.queue.element);
    this.stick = true;
    let before = 0;
    this.scroller.addEventListener("scroll", () => {
      // This is heard after the fact: what was added meanwhile is below the end that was scrolled to. Only who
      // went up has left the end.
      const { scrollTop, clientHeight, scrollHeight } = this.scroller;
      if (scrollTop + clientHeight >= scrollHeight - 40) this.stick = true;
      else if (scrollTop < before) this.stick = false;
      before = scrollTop;
    });
    this.growth = new ResizeObserver(() => this.follow());
    this.growth.observe(this.transcript.element);
    this.growth.observe(this.queue.element);
    void this.load();
  }

  focus() {
    this.text.focus();
  }

  close() {
    this.closed = true;
    this.stream?.close();
    this.queue.close();
    this.growth.disconnect();
    drafts.set(this.id, this.text.value);
  }

  path(rest = "") {
    return `/conversations/${encodeURIComponent(this.id)}${rest}`;
  }

  async load() {
    try {
      /** @type {Conversation} */
      const one = await get(this.path());
      const { items } = await get(this.path("/items"));
      if (this.closed) return;
      this.head(one);
      if (one.state === "recorded") {
        this.transcript.history(items);
        this.work(false);
      } else {
        this.replay(one, items);
      }
      this.flush();
      this.drawQueued();
      this.grow();
      if (!document.activeElement || document.activeElement === document.body) this.text.focus();
    } catch (error) {
      this.complain(error);
    }
  }

  /** @param {Conversation} one */
  head(one) {
    const title = shortened(visibleLine(one.title || "New conversation"), 200);
    this.title.textContent = title;
    this.endButton.hidden = one.state === "recorded";
    setPage(shortened(title, 60));
    const facts = [one.provider && one.model && one.model !== "none" ? `${visibleLine(one.model)} (${visibleLine(one.provider)})` : visibleLine(one.provider ?? one.model ?? ""), one.cwd ? visibleLine(one.cwd) : "", sandboxWord(one.sandbox), one.approval_policy ? `asks ${visibleLine(one.approval_policy)}` : ""].filter(Boolean);
    fill(this.facts, facts.map((fact) => h("span", { class: "chip" }, fact)));
    if (one.usage) this.drawMeter(one.usage.input ?? 0, one.usage.output ?? 0, undefined, one.context_window);
  }

  /**
   * A conversation that lives: what was before the server had it from its record, everything else from its events.
   * The person's words are in the record only, so they are put before the turns that they began, counted from the
   * last.
   *
   * @param {Conversation} one
   * @param {any[]} items
   */
  replay(one, items) {
    const last = one.last_event ?? 0;
    const from = Math.max(0, last - MOST_REPLAYED);
    /** @type {any[]} */
    const events = [];
    const users = items.flatMap((item, index) => (item.type === "message" && item.role === "user" ? [index] : []));
    const begin = () => {
      const turns = events.filter((event) => event.type === "TaskStarted").length;
      const first = users[Math.max(0, users.length - turns)] ?? items.length;
      this.transcript.history(turns === 0 ? items : items.slice(0, first));
      if (from > 0) this.transcript.note(`${plural(from, "earlier event")} left out`, "divider");
      for (const event of events) this.transcript.take(event);
      this.stick = true;
      this.follow();
    };
    this.work(one.state === "working");
    let replaying = last > from;
    if (!replaying) begin();
    this.listen(from, (event) => {
      if (!replaying) {
        this.transcript.take(event);
        return;
      }
      events.push(event);
      if (event.seq >= last) {
        replaying = false;
        begin();
      }
    });
  }

  /**
   * @param {number} after
   * @param {(event: any) => void} take
   */
  listen(after, take) {
    this.stream?.close();
    this.stream = new Stream(this.path(`/events?after=${after}`), {
      event: ({ data }) => take(JSON.parse(data)),
      refused: (error) => this.complain(error),
    });
  }

  /** @param {boolean} working */
  work(working) {
    const ended = this.working && !working;
    this.working = working;
    this.drawState(this.queue.cards.size);
    this.stopButton.hidden = !working;
    this.button.title = working ? "It is sent when the turn is over" : "Send";
    if (ended) {
      this.flush();
      this.listChanged();
      void get(this.path()).then((one) => this.head(one), () => {});
    }
  }

  /** @param {number} questions */
  drawState(questions) {
    const [kind, word] = questions > 0 ? ["waiting", "waits for an answer"] : this.working ? ["working", "working"] : ["good", "idle"];
    this.state.className = `status ${kind}`;
    this.state.textContent = word;
  }

  /** @param {any} event */
  usage(event) {
    this.drawMeter(event.total.input_tokens, event.total.output_tokens, event.last, event.context_window);
  }

  /**
   * @param {number} input
   * @param {number} written
   * @param {any} last
   * @param {number | undefined} window
   */
  drawMeter(input, written, last, window) {
    if (input + written === 0) return;
    this.meter.hidden = false;
    const full = last && window ? Math.min(1, (last.input_tokens + last.output_tokens) / window) : null;
    fill(
      this.meter,
      h("span", {}, `${count(input)} in · ${count(written)} out`),
      full === null ? null : h("progress", { max: "1", value: full.toFixed(3), "aria-label": "How much of the model's window is used" }),
      full === null ? null : h("span", {}, `${Math.round(full * 100)} %`),
    );
    this.meter.title = "Tokens that the model read and wrote in this conversation";
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "Escape" && this.working) {
      event.preventDefault();
      void this.interrupt();
    }
  }

  grow() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, 220)}px`;
  }

  submit() {
    const text = this.text.value;
    if (text.trim() === "") return;
    this.text.value = "";
    this.grow();
    const line = waiting.get(this.id) ?? [];
    line.push(text);
    waiting.set(this.id, line);
    this.drawQueued();
    this.flush();
  }

  /** Sends the next message, if nothing is in its way. */
  flush() {
    const line = waiting.get(this.id);
    if (this.working || this.sending || this.closed || !line?.length) return;
    const text = /** @type {string} */ (line.shift());
    this.drawQueued();
    void this.send(text);
  }

  /** @param {string} text */
  async send(text) {
    this.sending = true;
    this.note.hidden = true;
    this.stick = true;
    try {
      const told = await post(this.path("/turns"), { input: text }, { Prefer: "respond-async" });
      if (!this.stream && !this.closed) this.listen(told?.after ?? 0, (event) => this.transcript.take(event));
    } catch (error) {
      if (error instanceof Refused && error.status === 409) {
        // Somebody else's turn runs: ours comes after it.
        waiting.set(this.id, [text, ...(waiting.get(this.id) ?? [])]);
        this.work(true);
      } else {
        this.text.value = text;
        this.complain(error);
      }
    }
    this.sending = false;
    this.drawQueued();
  }

  async interrupt() {
    try {
      await post(this.path("/interrupt"));
    } catch (error) {
      this.complain(error);
    }
  }

  drawQueued() {
    const line = waiting.get(this.id) ?? [];
    fill(
      this.queued,
      line.map((text, index) =>
        h(
          "li",
          {},
          h("span", { class: "chip" }, "next"),
          h("span", { class: "one-line" }, visibleLine(shortened(text, 200))),
          h("button", { type: "button", class: "link", onclick: () => { line.splice(index, 1); this.text.value = text; this.grow(); this.drawQueued(); } }, "Edit"),
        ),
      ),
    );
  }

  /** @param {unknown} error */
  complain(error) {
    this.note.hidden = false;
    this.note.textContent = visible(error instanceof Error ? error.message : String(error));
  }

  follow() {
    if (this.stick) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.queue.settle();
  }

  /** Ends the live session; what was said stays written down. */
  async end() {
    try {
      await remove(this.path());
      location.hash = "#/conversations";
    } catch (error) {
      this.complain(error);
    }
  }
}

/** @param {any} sandbox */
export function sandboxWord(sandbox) {
  if (!sandbox) return "";
  return visibleLine(typeof sandbox === "string" ? sandbox : (sandbox.mode ?? ""));
}
