// One question, with all that the person should know and everything that can be answered, in the words and with
// the keys of the terminal prompt.
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
/** @typedef {import("./types.js").ExecQuestion} ExecQuestion */
/** @typedef {import("./types.js").PatchQuestion} PatchQuestion */
/** @typedef {{key: string, label: string, hint?: string, answer: Answer, kind: string}} Choice */

/** So long a card must have stood still. */
const GUARD_MS = 700;
/** How many refusals are shown before somebody asks for an explanation. */
const MOST_DENIALS = 8;
const LONGEST_FEEDBACK = 4000;

const REASONS = /** @type {Record<string, string>} */ ({
  "outside-writable-roots": "outside the writable roots",
  "protected-name": "protected",
  "network-off": "the network is off",
  "socket-outside-writable-roots": "a socket outside the writable roots",
  "never-allowed": "never allowed in the sandbox",
});

/** All that can be answered to a question, in the order of the terminal prompt. @param {OpenQuestion} asked */
export function choicesOf(asked) {
  /** @type {Choice[]} */
  const found = [];
  const question = asked.question;
  if (question.type === "ExecApprovalRequest") {
    const offer = question.grant_offer;
    if (offer) {
      const what = visibleLine(offer.summary);
      found.push({ key: "g", label: `Only let it ${what}`, answer: { decision: "approved_with_grant", scope: "call" }, kind: "best" });
      found.push({ key: "G", label: "The same for the session", answer: { decision: "approved_with_grant", scope: "session" }, kind: "plain" });
    }
    const label = question.without_sandbox ? "Yes, without the sandbox" : "Yes, once";
    found.push({ key: "y", label, answer: { decision: "approved" }, kind: question.without_sandbox ? "risky" : "best" });
    if (!offer && !question.denials?.length && !question.more_denials) found.push({ key: "s", label: "Yes, for the session", answer: { decision: "approved_for_session" }, kind: "plain" });
    if (question.proposed_rule) {
      const words = visibleLine(question.proposed_rule.join(" "));
      found.push({ key: "r", label: "Yes, always for", hint: words, answer: { decision: "approved_with_rule" }, kind: "plain" });
    }
  } else {
    found.push({ key: "y", label: "Yes, once", answer: { decision: "approved" }, kind: "best" });
    if (!question.only_once) {
      const label = question.grant_root ? "Yes, and to everything in" : "Yes, and to these files for the session";
      const hint = question.grant_root ? visibleLine(question.grant_root) : undefined;
      found.push({ key: "s", label, hint, answer: { decision: "approved_for_session" }, kind: "plain" });
    }
  }
  found.push({ key: "n", label: "No…", answer: { decision: "denied" }, kind: "plain" });
  found.push({ key: "a", label: "No, and stop everything", answer: { decision: "abort" }, kind: "stop" });
  return found;
}

export class Card {
  /**
   * @param {OpenQuestion} asked
   * @param {{mayAnswer: boolean, answered?: () => void}} options
   */
  constructor(asked, options) {
    this.asked = asked;
    this.options = options;
    this.choices = choicesOf(asked);
    this.ready = false;
    this.busy = false;
    /** @type {number | undefined} */
    this.timer = undefined;
    this.top = NaN;
    this.more = h("div", { class: "explained", hidden: true });
    this.message = h("p", { class: "card-message", role: "alert", hidden: true });
    this.saying = this.feedback();
    this.buttons = h("div", { class: "answers", role: "group", "aria-label": "Answers" });
    const title = titleOf(asked);
    this.element = h(
      "article",
      { class: "card", tabindex: "0", "data-id": asked.id, "data-risk": riskOf(asked), "aria-label": `${title} ${summary(asked)}`, onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      h("header", {}, h("h2", {}, title), riskBadge(asked), h("span", { class: "spacer" }), moment(asked.asked)),
      ...(asked.question.type === "ExecApprovalRequest" ? command(asked, asked.question) : changes(asked, asked.question)),
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
          { type: "button", class: `answer ${choice.kind}`, "data-key": choice.key, "aria-keyshortcuts": choice.key, onclick: () => this.choose(choice) },
          key(choice.key),
          h("span", {}, choice.label, choice.hint ? [" ", h("code", {}, choice.hint)] : null),
        ),
      ),
      explain,
    );
  }

  feedback() {
    const field = h("input", { type: "text", name: "feedback", maxlength: LONGEST_FEEDBACK, autocomplete: "off", "aria-label": "What the model is told with the no", placeholder: "What should it do instead? It is told to the model; you may leave it out." });
    this.field = field;
    return h(
      "form",
      {
        class: "saying",
        hidden: true,
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          const words = field.value.trim();
          void this.send(words ? { decision: "denied", feedback: words } : { decision: "denied" });
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
    void this.send(choice.answer);
  }

  /** @param {Answer} answer */
  async send(answer) {
    if (this.busy) return;
    this.busy = true;
    this.element.dataset.state = "busy";
    this.message.hidden = true;
    try {
      await answerQuestion(this.asked, answer);
      say(`${decisionWord(answer)}: ${summary(this.asked)}`);
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
    if (!hidden && !this.more.hasChildNodes()) fill(this.more, explanation(this.asked, this.choices));
  }
}

/** @param {Answer} answer */
export function decisionWord(answer) {
  switch (answer.decision) {
    case "approved":
      return "Approved";
    case "approved_for_session":
      return "Approved for the session";
    case "approved_with_rule":
      return "Approved with a rule";
    case "approved_with_grant":
      return answer.scope === "session" ? "Granted for the session" : "Granted";
    case "denied":
      return "Denied";
    case "abort":
      return "Stopped";
    default:
      return answer.decision;
  }
}

/** @param {OpenQuestion} asked */
export function titleOf(asked) {
  const question = asked.question;
  if (question.type !== "ExecApprovalRequest") return "May these files be changed?";
  return question.denials?.length ? "The sandbox blocked this." : "May this run?";
}

/** @param {OpenQuestion} asked */
function riskOf(asked) {
  const question = asked.question;
  return question.type === "ExecApprovalRequest" ? (question.risk?.risk_level.toLowerCase() ?? null) : null;
}

/** @param {OpenQuestion} asked */
function riskBadge(asked) {
  const risk = riskOf(asked);
  return risk ? h("span", { class: `risk ${risk}` }, `${risk} risk`) : null;
}

/**
 * @param {string} name
 * @param {...import("./dom.js").Child} value
 */
function fact(name, ...value) {
  return [h("dt", {}, name), h("dd", {}, ...value)];
}

/** @param {OpenQuestion} asked */
function whoAsks(asked) {
  const agent = asked.question.agent;
  const conversation = asked.conversation;
  return fact(
    "asked by",
    h("span", { class: "front-end" }, visibleLine(asked.front_end)),
    agent ? h("span", {}, " · the subagent ", h("code", {}, visibleLine(agent))) : null,
    // Where it would run is said above.
    asked.question.type === "ExecApprovalRequest" && asked.question.cwd === asked.workspace ? null : h("span", {}, " in ", h("code", { class: "path" }, visibleLine(asked.workspace))),
    conversation ? h("span", {}, " · ", h("a", { href: `#/conversations/${encodeURIComponent(conversation)}` }, "conversation")) : null,
  );
}

/**
 * @param {OpenQuestion} asked
 * @param {ExecQuestion} question
 */
function command(asked, question) {
  const denials = question.denials ?? [];
  const hidden = Math.max(0, denials.length - MOST_DENIALS) + (question.more_denials ?? 0);
  return [
    h("pre", { class: "command untrusted", "aria-label": "Command" }, visible(question.command_text).split("\n").map((line, index) => h("span", { class: "command-line", "data-mark": index === 0 ? "$" : "" }, line || " "))),
    h(
      "dl",
      { class: "facts" },
      fact("in", h("code", { class: "path" }, visibleLine(question.cwd))),
      whoAsks(asked),
      fact("because", h("span", { class: "untrusted words" }, visible(question.reason))),
      question.justification
        ? fact("the model says", h("q", { class: "model-says untrusted words" }, visible(question.justification)))
        : [],
      denials.length || hidden
        ? fact(
            "blocked",
            h(
              "ul",
              { class: "refusals untrusted" },
              denials.slice(0, MOST_DENIALS).map((denial) =>
                h("li", {}, h("span", { class: "operation" }, visibleLine(denial.operation)), " ", h("code", {}, visibleLine(denial.target)), h("span", { class: "rule" }, ` ${REASONS[denial.rule] ?? visibleLine(denial.rule)}`)),
              ),
              hidden ? h("li", { class: "left-out" }, `${hidden} more`) : null,
            ),
          )
        : [],
      question.risk ? fact("risk", h("span", { class: "untrusted words" }, visible(question.risk.description))) : [],
      question.proposed_rule ? fact("rule offered", h("code", {}, visibleLine(question.proposed_rule.join(" "))), h("span", { class: "rule" }, " and whatever follows")) : [],
      fact("a plain yes", question.without_sandbox ? h("strong", { class: "outside" }, "runs it without the sandbox, with all your rights") : "runs it once, as the session confines it"),
    ),
  ];
}

/**
 * @param {OpenQuestion} asked
 * @param {PatchQuestion} question
 */
function changes(asked, question) {
  return [
    patch(question.changes),
    h(
      "dl",
      { class: "facts" },
      whoAsks(asked),
      fact("because", h("span", { class: "untrusted words" }, visible(question.reason))),
      fact("a plain yes", question.only_once ? "changes these files this once; they are settings, and are asked about each time" : "changes these files this once"),
    ),
  ];
}

/**
 * @param {OpenQuestion} asked
 * @param {Choice[]} choices
 */
function explanation(asked, choices) {
  const question = asked.question;
  const parts = [];
  if (question.type === "ExecApprovalRequest") {
    parts.push(h("h3", {}, "The words as they would run"), h("ol", { class: "argv untrusted" }, question.command.map((word) => h("li", {}, h("code", {}, visibleLine(word) || "(empty)")))));
    if (question.denials?.length) {
      parts.push(
        h("h3", {}, "What the sandbox refused"),
        h("ul", { class: "refusals untrusted" }, question.denials.map((denial) => h("li", {}, h("span", { class: "operation" }, visibleLine(denial.operation)), " ", h("code", {}, visibleLine(denial.target)), h("span", { class: "rule" }, ` ${REASONS[denial.rule] ?? visibleLine(denial.rule)}, by the system call ${visibleLine(denial.syscall)}`)))),
      );
    }
    const offer = question.grant_offer;
    if (offer) {
      const opened = [...(offer.writable ?? []).map((path) => `write to ${visibleLine(path)}`), ...(offer.sockets ?? []).map((path) => `connect to ${visibleLine(path)}`), ...(offer.network ? ["reach the network"] : [])];
      parts.push(h("h3", {}, "What the grant opens, and nothing else"), h("ul", { class: "untrusted" }, opened.map((text) => h("li", {}, text))));
    }
  }
  const meanings = choices.map((choice) => h("li", {}, key(choice.key), " ", meaning(choice, asked)));
  parts.push(h("h3", {}, "What the answers mean"), h("ul", { class: "meanings" }, meanings));
  return parts;
}

/**
 * @param {Choice} choice
 * @param {OpenQuestion} asked
 */
function meaning(choice, asked) {
  const question = asked.question;
  switch (choice.answer.decision) {
    case "approved_with_grant":
      return choice.answer.scope === "session" ? "It stays in the sandbox; what was blocked stays open to commands until the session ends." : "It stays in the sandbox; what was blocked is opened for this call.";
    case "approved":
      return question.type === "ExecApprovalRequest" && question.without_sandbox ? "It runs once with nothing around it: it can do whatever you can do." : "It happens this once. The same is asked about again.";
    case "approved_for_session":
      return "It happens, and the same is not asked about again until the session ends.";
    case "approved_with_rule":
      return "It runs, and commands that begin with these words are allowed in this and in later sessions.";
    case "denied":
      return "It does not happen. The work goes on, and the model is told what you write.";
    default:
      return "It does not happen, and the turn ends.";
  }
}
