// The page of questions: the oldest first, the first of them with the focus.

import { Card } from "./card.js";
import { choices, fill, h, icon, isWriting, moment, plural } from "./dom.js";
import { askForNotifications, notificationState, summary } from "./notify.js";
import { answered, areQuestionsKnown, openQuestions, watchQuestions } from "./questions.js";

/** @typedef {import("./types.js").OpenQuestion} OpenQuestion */

/** Cards of questions that come and go, kept in step with what is open. */
export class Queue {
  /**
   * @param {{mayAnswer: boolean, only?: (asked: OpenQuestion) => boolean, focus?: boolean, changed?: (waiting: number) => void}} options
   */
  constructor(options) {
    this.options = options;
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    this.element = h("div", { class: "queue" });
    // Whatever moves under the person's hands is guarded again, also when a card above it grows.
    this.moves = new ResizeObserver(() => this.settle());
    this.moves.observe(this.element);
    this.stop = watchQuestions(() => this.update());
    this.update();
  }

  close() {
    this.stop();
    this.moves.disconnect();
  }

  settle() {
    for (const card of this.cards.values()) card.settle();
  }

  update() {
    const { only } = this.options;
    const open = openQuestions().filter((asked) => !only || only(asked));
    const ids = new Set(open.map((asked) => asked.id));
    let hadFocus = false;
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      hadFocus ||= card.element.contains(document.activeElement);
      card.element.remove();
      this.cards.delete(id);
    }
    for (const asked of open) {
      if (this.cards.has(asked.id)) continue;
      const card = new Card(asked, { mayAnswer: this.options.mayAnswer });
      this.cards.set(asked.id, card);
      this.element.append(card.element);
    }
    this.settle();
    this.options.changed?.(this.cards.size);
    const first = this.cards.values().next().value;
    const idle = document.activeElement === document.body || document.activeElement === null;
    if (first && (hadFocus || (this.options.focus && idle && !isWriting(document.activeElement)))) {
      first.guard();
      first.element.focus({ preventScroll: !hadFocus });
    }
  }

  /** Moves the focus. @param {1 | -1} by */
  step(by) {
    const cards = [...this.cards.values()];
    const at = cards.findIndex((card) => card.element.contains(document.activeElement));
    const next = cards[Math.max(0, Math.min(cards.length - 1, at < 0 ? 0 : at + by))];
    next?.element.focus();
    next?.element.scrollIntoView({ block: "nearest" });
  }
}

/**
 * @param {HTMLElement} root
 * @param {{role: string}} me
 */
export function approvalsPage(root, me) {
  const mayAnswer = me.role === "approver";
  const lead = h("p", { class: "lead" });
  const empty = h("div", { class: "empty" }, icon("approvals"), h("h2", {}, "Nothing waits for you"), h("p", {}, "When a command or a patch needs a person, it appears here."));
  const queue = new Queue({ mayAnswer, focus: true });
  const history = h("section", { class: "answered" });
  const bell = h("div", { class: "hint", hidden: true });
  const drawBell = () => {
    bell.hidden = !mayAnswer || notificationState() !== "default" || choices.get("bell") === "no";
    const no = () => {
      choices.set("bell", "no");
      drawBell();
    };
    fill(bell, h("span", {}, "Be told when something waits while you look elsewhere."), h("span", { class: "hint-actions" }, h("button", { type: "button", class: "link", onclick: no }, "No, thanks"), h("button", { type: "button", class: "button small", onclick: () => void askForNotifications().then(drawBell) }, "Allow notifications")));
  };
  const draw = () => {
    const number = openQuestions().length;
    empty.hidden = number > 0 || !areQuestionsKnown();
    lead.textContent = !areQuestionsKnown() ? "Asking the server…" : number === 0 ? "" : `${plural(number, "question")} ${number === 1 ? "waits" : "wait"} for an answer.`;
    fill(
      history,
      answered.length > 0 && h("h2", {}, "Answered in this tab"),
      answered.length > 0 &&
        h(
          "ul",
          {},
          answered.map(({ question, answer, said, when }) =>
            h("li", {}, h("span", { class: `verdict ${answer.decision}` }, said), h("code", { class: "untrusted one-line" }, summary(question)), moment(when)),
          ),
        ),
    );
  };
  const stop = watchQuestions(draw);
  draw();
  drawBell();
  fill(root, h("div", { class: "page narrow" }, h("h1", {}, "Approvals"), lead, bell, queue.element, empty, history));
  queue.update();
  return {
    /** @param {KeyboardEvent} event */
    key(event) {
      if (event.key === "j") queue.step(1);
      else if (event.key === "k") queue.step(-1);
      else return false;
      return true;
    },
    close() {
      stop();
      queue.close();
    },
  };
}
