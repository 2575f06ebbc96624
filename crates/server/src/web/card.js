// One question, with all that the person should know and everything that can be answered. The words come from the
// server, which has the same for every front end; here they are laid out.
//
// A key or a click counts only if the person can have meant this question: the card must have the focus, and it
// must have stood still for a moment. What was typed or clicked before it appeared, or while it moved, is no answer.

import { patch } from "./diff.js";
import { fill, h, key, moment } from "./dom.js";
import { answerQuestion, wholeQuestion } from "./questions.js";
import { say, summary } from "./notify.js";
import { visible, visibleLine } from "./visible.js";

/** @typedef {import("./types.js").OpenQuestion} OpenQuestion */
/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Choice} Choice */

/** So long a card must have stood still. */
const GUARD_MS = 700;
const LONGEST_FEEDBACK = 4000;

/** What an answer's button looks like. @param {OpenQuestion} asked @param {Choice} choice */
function look({ question }, { answer }) {
  if (answer.decision === "abort") return "stop";
  if (answer.decision === "approved") return question.type === "ExecApprovalRequest" && question.without_sandbox ? "risky" : "best";
  return answer.decision === "approved_with_grant" && answer.scope === "call" ? "best" : "plain";
}

/** Front ends whose command a person typed. */
const TYPED = ["run", "patch", "session"];

/** Who hears what is written beside a no. @param {OpenQuestion} asked */
function heard({ front_end, conversation }) {
  if (TYPED.includes(front_end)) return "Why not? It is kept in the record";
  if (front_end === "serve" && !conversation) return "What should be done instead? It is told to the program that made the call";
  return "What should it do instead? It is told to the model";
}

/** @param {string} words */
function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export class Card {
  /**
   * @param {OpenQuestion} asked
   * @param {{mayAnswer: boolean, answered?: () => void}} options
   */
  constructor(asked, options) {
    this.asked = asked;
    this.options = options;
    this.choices = asked.shown.choices;
    this.ready = false;
    this.busy = false;
    /** @type {number | undefined} */
    this.timer = undefined;
    this.top = NaN;
    this.more = h("div", { class: "explained", hidden: true });
    this.message = h("p", { class: "card-message", role: "alert", hidden: true });
    this.saying = this.feedback();
    this.buttons = h("div", { class: "answers", role: "group", "aria-label": "Answers" });
    const { title } = asked.shown;
    const risk = riskOf(asked);
    this.element = h(
      "article",
      { class: "card", tabindex: "0", "data-id": asked.id, "data-risk": risk?.level, "aria-label": `${title} ${summary(asked)}`, onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      h("header", {}, h("h2", {}, title), risk && h("span", { class: `risk ${risk.level}` }, risk.label), h("span", { class: "spacer" }), moment(asked.asked)),
      asked.question.type === "ExecApprovalRequest" ? command(asked) : patch(asked.question.changes),
      facts(asked),
      this.more,
      this.message,
      options.mayAnswer ? this.saying : null,
      this.buttons,
    );
    this.drawButtons();
    this.guard();
    if (asked.cut) void this.complete();
  }

  /** Brings what the list has left out. Until it is there, it is said that it is not. */
  async complete() {
    const shown = this.element.querySelector(".patch");
    const note = h("p", { class: "cut", role: "status" }, "This is only the beginning of a long change; the rest is on its way.");
    shown?.after(note);
    try {
      const { question } = await wholeQuestion(this.asked);
      if (question.type === "ApplyPatchApprovalRequest") shown?.replaceWith(patch(question.changes));
      note.remove();
    } catch (error) {
      note.textContent = `This is only the beginning of a long change, and the rest could not be had: ${visible(error instanceof Error ? error.message : String(error))}`;
    }
    this.guard();
  }

  drawButtons() {
    const explain = h("button", { type: "button", class: "answer quiet", "data-key": "e", "aria-expanded": "false", "aria-keyshortcuts": "e", onclick: () => this.explain() }, key("e"), h("span", {}, "Explain"));
    if (!this.options.mayAnswer) {
      fill(this.buttons, h("p", { class: "read-only" }, "This token may ask and not answer. ", h("code", {}, "sandgate console"), " prints the address of the console that may."), explain);
      return;
    }
    fill(
      this.buttons,
      this.choices.map((choice) =>
        h(
          "button",
          { type: "button", class: `answer ${look(this.asked, choice)}`, "data-key": choice.key, "aria-keyshortcuts": choice.key, onclick: () => this.choose(choice) },
          key(choice.key),
          h("span", {}, capital(visibleLine(choice.label)), choice.answer.decision === "denied" ? "…" : null),
        ),
      ),
      explain,
    );
  }

  feedback() {
    const field = h("input", { type: "text", name: "feedback", maxlength: LONGEST_FEEDBACK, autocomplete: "off", "aria-label": "What you say with the no", placeholder: `${heard(this.asked)}; you may leave it out.` });
    this.field = field;
    return h(
      "form",
      {
        class: "saying",
        hidden: true,
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          const words = field.value.trim();
          const no = this.choices.find(({ answer }) => answer.decision === "denied");
          if (no) void this.send(no, words ? { ...no.answer, feedback: words } : no.answer);
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          event.stopPropagation();
          if (event.key !== "Escape") return;
          this.saying.hidden = true;
          this.element.focus();
        },
      },
      field,
      h("button", { type: "submit", class: "answer stop" }, key("Enter"), h("span", {}, "Say no")),
    );
  }

  /** Nothing counts as an answer for a moment from now on. */
  guard() {
    this.ready = false;
    this.element.dataset.state = "guarded";
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.ready = true;
      this.element.dataset.state = this.busy ? "busy" : "ready";
    }, GUARD_MS);
  }

  /** Begins the guard anew if the card is not where it was on the screen. */
  settle() {
    const { top } = this.element.getBoundingClientRect();
    if (Math.abs(top - this.top) > 1) this.guard();
    this.top = top;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target instanceof Element && event.target.closest("button, a, input, summary")) return;
    if (event.key === "e") {
      event.preventDefault();
      this.explain();
      return;
    }
    const choice = this.choices.find(({ key: letter }) => letter === event.key);
    if (!choice || !this.options.mayAnswer) return;
    event.preventDefault();
    this.choose(choice);
  }

  /** @param {Choice} choice */
  choose(choice) {
    if (!this.ready || this.busy) return;
    if (choice.answer.decision === "denied") {
      this.saying.hidden = false;
      this.field?.focus();
      return;
    }
    void this.send(choice, choice.answer);
  }

  /** @param {Choice} choice @param {Answer} answer */
  async send({ said }, answer) {
    if (this.busy) return;
    this.busy = true;
    this.element.dataset.state = "busy";
    this.message.hidden = true;
    try {
      await answerQuestion(this.asked, answer, said);
      say(`${said}: ${summary(this.asked)}`);
      this.options.answered?.();
    } catch (error) {
      this.busy = false;
      this.message.hidden = false;
      this.message.textContent = visible(error instanceof Error ? error.message : String(error));
      this.guard();
    }
  }

  explain() {
    const hidden = !this.more.hidden;
    this.more.hidden = hidden;
    this.buttons.querySelector("[data-key=e]")?.setAttribute("aria-expanded", String(!hidden));
    // The answers are somewhere else now.
    this.guard();
    if (!hidden && !this.more.hasChildNodes()) fill(this.more, explanation(this.asked));
  }
}

/** @param {OpenQuestion} asked */
function riskOf({ shown }) {
  const fact = shown.facts.find(({ kind }) => kind.endsWith("_risk"));
  return fact ? { level: fact.kind.replace("_risk", ""), label: fact.label } : null;
}

/** @param {OpenQuestion} asked */
function command({ shown }) {
  const lines = shown.subject.map((line, index) => h("span", { class: "command-line", "data-mark": index === 0 ? "$" : "" }, visible(line) || " "));
  return h("pre", { class: "command untrusted", "aria-label": "Command" }, lines);
}

/** Where it would run, what is known of it, each under its label, and from where it is asked. @param {OpenQuestion} asked */
function facts({ shown, question, front_end, workspace, conversation }) {
  const outside = question.type === "ExecApprovalRequest" && question.without_sandbox;
  const rows = shown.facts.flatMap(({ kind, label, text }, index) => [
    label === shown.facts[index - 1]?.label ? null : h("dt", {}, label),
    h("dd", { class: `${kind.replace("_", "-")} ${outside && kind === "yes" ? "outside" : ""} untrusted words` }, visible(text)),
  ]);
  const place = shown.place === undefined ? [] : [h("dt", {}, "in"), h("dd", {}, h("code", { class: "path" }, visibleLine(shown.place)))];
  const link = conversation ? [" · ", h("a", { href: `#/conversations/${encodeURIComponent(conversation)}` }, "conversation")] : [];
  const from = h("dd", {}, h("span", { class: "front-end" }, visibleLine(front_end)), " in ", h("code", { class: "path" }, visibleLine(workspace)), ...link);
  return h("dl", { class: "facts" }, place, rows, h("dt", {}, "from"), from);
}

/** @param {OpenQuestion} asked */
function explanation({ shown }) {
  const details = shown.details.map(({ title, lines }) => [h("h3", {}, title), h("ol", { class: "details untrusted" }, lines.map((line) => h("li", {}, h("code", {}, visibleLine(line)))))]);
  const effects = shown.choices.map((choice) => h("li", {}, key(choice.key), " ", visibleLine(choice.effect)));
  return [...details.flat(), h("h3", {}, "What the answers mean"), h("ul", { class: "meanings" }, effects)];
}
