// What happened in a conversation, as cells: each event of the session's one line goes into the cell that it
// belongs to. Text of the model and output of commands stay inside of their cells.

import { bytesOf } from "./api.js";
import { Output, output } from "./ansi.js";
import { patch, unifiedDiff } from "./diff.js";
import { count, fill, h, plural } from "./dom.js";
import { markdown } from "./markdown.js";
import { commandLine, shortened, visible, visibleLine } from "./visible.js";

/** So many cells stay on the page. */
const MOST_CELLS = 400;
const LONGEST_INPUT = 20_000;

/** @typedef {{type: string, [field: string]: any}} Happened */

/** What the model has been asked to do, as one line. @param {string} tool @param {string} input */
export function callTitle(tool, input) {
  let asked;
  try {
    asked = JSON.parse(input);
  } catch {
    const file = /^\*\*\* (?:Add|Update|Delete) File: (.*)$/m.exec(input)?.[1];
    return shortened(visibleLine(file ?? input.split("\n")[0] ?? ""), 160);
  }
  if (asked === null || typeof asked !== "object") return shortened(visibleLine(input), 160);
  const words = asked.command ?? asked.cmd;
  if (typeof words === "string" || Array.isArray(words)) return shortened(commandLine(typeof words === "string" ? words : words.map(String)), 300);
  const first = asked.path ?? asked.file_path ?? asked.pattern ?? asked.query ?? asked.input ?? asked.process_id ?? asked.task;
  return shortened(visibleLine(typeof first === "string" ? first : input), 160);
}

/** A call of a tool, with what came of it. */
class Call {
  /**
   * @param {string} tool
   * @param {string} title
   * @param {string} input
   */
  constructor(tool, title, input) {
    this.tool = visibleLine(tool);
    this.status = h("span", { class: "status working" }, "running");
    this.title = h("code", { class: "call-title" }, title);
    this.notes = h("ul", { class: "call-notes untrusted", hidden: true });
    this.place = h("p", { class: "call-place", hidden: true });
    this.results = h("div", { class: "call-results" });
    this.input = input;
    this.element = h(
      "details",
      { class: "cell call", ontoggle: () => this.unfold() },
      h("summary", {}, h("span", { class: "tool" }, this.tool), this.title, this.status),
      this.place,
      this.notes,
      this.results,
    );
    this.asked = h("div", { class: "call-input", hidden: true });
    this.results.before(this.asked);
    /** @type {Output | null} */
    this.output = null;
    this.hasPatch = false;
  }

  unfold() {
    if (!this.element.open || this.asked.hasChildNodes() || this.input === "") return;
    this.asked.hidden = this.hasPatch;
    let asked;
    try {
      asked = JSON.parse(this.input);
    } catch {
      // It is the tool's own kind of text.
    }
    const words = asked?.command ?? asked?.cmd;
    if (words === undefined || callTitle("", this.input) !== this.title.textContent || this.title.textContent.endsWith(" more characters]")) {
      const text = asked === undefined ? this.input : JSON.stringify(asked, null, 2);
      fill(this.asked, h("pre", { class: "untrusted", tabindex: "0" }, visible(shortened(text, LONGEST_INPUT))));
      return;
    }
    // The command is the title; what else was asked for is said beside it.
    const rest = Object.entries(asked).filter(([name]) => name !== "command" && name !== "cmd");
    fill(this.asked, rest.map(([name, value]) => h("span", { class: "chip untrusted" }, `${visibleLine(name)}: ${shortened(visibleLine(typeof value === "string" ? value : JSON.stringify(value)), 500)}`)));
  }

  /** @param {string} text @param {string} [kind] */
  note(text, kind = "") {
    this.notes.hidden = false;
    this.notes.append(h("li", { class: kind }, visible(text)));
  }

  /** @param {string} text @param {"working" | "good" | "bad" | "waiting"} kind */
  say(text, kind) {
    this.status.className = `status ${kind}`;
    this.status.textContent = text;
  }

  out() {
    if (!this.output) {
      this.output = new Output();
      this.results.append(this.output.element);
    }
    return this.output;
  }

  /** @param {Happened} event */
  began(event) {
    this.place.hidden = false;
    const outside = event.sandbox === "none";
    fill(this.place, "in ", h("code", { class: "path" }, visibleLine(event.cwd)), h("span", { class: outside ? "outside" : "inside" }, outside ? " · without a sandbox" : " · in the sandbox"));
    this.say("running", "working");
  }

  /** @param {Happened} event */
  ended(event) {
    if (!this.output && event.aggregated_output?.text) this.out().text(event.aggregated_output.text);
    const seconds = (event.duration_ms / 1000).toFixed(event.duration_ms < 10_000 ? 2 : 0);
    const how = event.timed_out ? "timed out" : event.cancelled ? "cancelled" : event.signal ? `signal ${event.signal}` : `exit ${event.exit_code}`;
    this.say(`${how} · ${seconds} s`, event.exit_code === 0 ? "good" : "bad");
    for (const denial of (event.denials ?? []).slice(0, 8)) this.note(`blocked: ${denial.operation} ${denial.target}`, "blocked");
    const more = Math.max(0, (event.denials ?? []).length - 8) + (event.more_denials ?? 0);
    if (more > 0) this.note(`blocked: ${more} more`, "blocked");
  }

  /** @param {Happened} event */
  done(event) {
    if (this.status.classList.contains("working") || this.status.classList.contains("waiting")) this.say(event.success ? "done" : "failed", event.success ? "good" : "bad");
    if (!this.output && !this.hasPatch && event.output) this.results.append(output(event.output));
    else if (!event.success && !this.output && event.output) this.note(shortened(event.output, 2000), "blocked");
  }
}

/** The cells of a conversation or of a subagent. */
export class Transcript {
  /**
   * @param {{changed?: () => void, usage?: (usage: Happened) => void, working?: (working: boolean) => void}} [hooks]
   */
  constructor(hooks = {}) {
    this.hooks = hooks;
    this.element = h("div", { class: "transcript" });
    this.earlier = h("p", { class: "gap", hidden: true });
    this.element.append(this.earlier);
    this.dropped = 0;
    /** @type {Map<string, Call>} */
    this.calls = new Map();
    /** @type {Map<string, {transcript: Transcript, status: HTMLElement}>} */
    this.agents = new Map();
    /** What the model is saying or thinking. @type {{kind: string, text: string, body: HTMLElement, element: HTMLElement} | null} */
    this.live = null;
    this.planned = false;
  }

  /** @param {HTMLElement} cell */
  add(cell) {
    this.element.append(cell);
    while (this.element.childElementCount - 1 > MOST_CELLS) {
      this.element.children[1].remove();
      this.dropped += 1;
    }
    if (this.dropped > 0) {
      this.earlier.hidden = false;
      this.earlier.textContent = `${plural(this.dropped, "earlier cell")} left out`;
    }
    this.hooks.changed?.();
    return cell;
  }

  /** @param {string} text */
  user(text) {
    const body = h("div", { class: "said untrusted words" }, visible(shortened(text, 50_000)));
    return this.add(h("section", { class: "cell user" }, h("h3", { class: "who" }, "You"), body));
  }

  /** @param {string} text @param {string} [kind] */
  note(text, kind = "") {
    return this.add(h("p", { class: `cell note untrusted words ${kind}` }, visible(text)));
  }

  /** @param {string} kind */
  speak(kind) {
    if (this.live?.kind === kind) return this.live;
    this.settle();
    const body = h("div", { class: "body" });
    const element =
      kind === "thought"
        ? h("details", { class: "cell thought" }, h("summary", {}, "Thoughts"), body)
        : h("section", { class: "cell model" }, h("h3", { class: "who" }, "Model"), body);
    this.add(element);
    this.live = { kind, text: "", body, element };
    return this.live;
  }

  /** @param {string} kind @param {string} delta */
  stream(kind, delta) {
    const live = this.speak(kind);
    live.text += delta;
    if (this.planned) return;
    this.planned = true;
    // Long answers are read anew each time, so they are drawn less often.
    setTimeout(() => this.drawLive(), Math.min(400, 30 + live.text.length / 200));
  }

  drawLive() {
    this.planned = false;
    if (!this.live) return;
    fill(this.live.body, markdown(this.live.text));
    this.hooks.changed?.();
  }

  /** @param {string} kind @param {string} text */
  finish(kind, text) {
    const live = this.speak(kind);
    live.text = text;
    this.drawLive();
    this.live = null;
  }

  /** What was being said is all there is. */
  settle() {
    if (!this.live) return;
    this.drawLive();
    this.live = null;
  }

  /** @param {string} id @param {string} [tool] @param {string} [input] @param {string} [title] */
  call(id, tool = "command", input = "", title = undefined) {
    let call = this.calls.get(id);
    if (!call) {
      this.settle();
      call = new Call(tool, title ?? callTitle(tool, input), input);
      this.calls.set(id, call);
      this.add(call.element);
    }
    return call;
  }

  /** Takes the next event of the session. @param {Happened} event */
  take(event) {
    switch (event.type) {
      case "TaskStarted":
        this.hooks.working?.(true);
        break;
      case "UserMessage":
        this.user(event.message);
        break;
      case "AgentMessageDelta":
        this.stream("message", event.delta);
        break;
      case "AgentMessage":
        this.finish("message", event.message);
        break;
      case "AgentReasoningDelta":
        this.stream("thought", event.delta);
        break;
      case "AgentReasoning":
        this.finish("thought", event.text);
        break;
      case "StreamError":
        // What came until now does not count.
        this.live?.element.remove();
        this.live = null;
        this.note(`The model's answer was cut off (${event.message}). Attempt ${event.attempt} follows.`, "warning");
        break;
      case "ToolCallBegin":
        this.call(event.call_id, event.tool, event.input);
        break;
      case "ToolCallEnd":
        this.call(event.call_id).done(event);
        break;
      case "ExecCommandBegin": {
        const call = this.call(event.call_id, "command", "", commandLine(event.command));
        call.began(event);
        call.element.open = true;
        call.out();
        break;
      }
      case "ExecCommandOutputDelta":
        this.call(event.call_id).out().write(bytesOf(/** @type {any} */ (event)));
        break;
      case "ExecCommandOutputOmitted":
        this.call(event.call_id).note("The rest of its output is not streamed; it is in the result.");
        break;
      case "ExecCommandEnd": {
        const call = this.call(event.call_id);
        call.ended(event);
        if (call.output?.empty) {
          if (event.aggregated_output?.text) call.output.text(event.aggregated_output.text);
          else call.output.element.remove();
        }
        break;
      }
      case "ExecApprovalRequest":
        this.call(event.call_id, "command", "", visibleLine(event.command_text)).say("waits for approval", "waiting");
        break;
      case "ApplyPatchApprovalRequest":
        this.call(event.call_id, "apply_patch", "", plural(event.changes.length, "file")).say("waits for approval", "waiting");
        break;
      case "ApprovalResponse": {
        const call = this.call(event.call_id);
        const no = event.decision === "denied" || event.decision === "abort";
        call.say(no ? "denied" : "approved", no ? "bad" : "working");
        call.note(event.said, no ? "blocked" : "approved");
        break;
      }
      case "PatchApplyBegin": {
        const call = this.call(event.call_id, "apply_patch", "", plural(event.changes.length, "file"));
        call.hasPatch = true;
        call.asked.hidden = true;
        call.element.open = true;
        call.results.append(patch(event.changes));
        break;
      }
      case "PatchApplyEnd": {
        const call = this.call(event.call_id);
        call.say(event.success ? "applied" : "not applied", event.success ? "good" : "bad");
        if (!event.success) call.note(event.message, "blocked");
        break;
      }
      case "TurnDiff":
        this.turnDiff(event);
        break;
      case "ProcessWoke":
        this.add(h("p", { class: "cell note" }, "The process ", h("a", { href: `#/terminals` }, visibleLine(event.process_id)), ` ${String(event.reason).replaceAll("_", " ")}.`));
        break;
      case "TokenCount":
        this.hooks.usage?.(event);
        break;
      case "ContextCompacted":
        this.note(`The history was made shorter: from about ${count(event.tokens_before)} to ${count(event.tokens_after)} tokens.`, "divider");
        break;
      case "Warning":
        this.note(event.message, "warning");
        break;
      case "Error":
        this.note(event.message, "error");
        break;
      case "SubAgentBegin":
        this.agent(event.agent, event.task);
        break;
      case "SubAgent":
        this.agent(event.agent, "").transcript.take(event.event);
        break;
      case "SubAgentEnd": {
        const { status } = this.agent(event.agent, "");
        status.className = `status ${event.success ? "good" : "bad"}`;
        status.textContent = event.success ? "done" : "failed";
        break;
      }
      case "TaskComplete":
        this.settle();
        this.hooks.working?.(false);
        break;
      case "TurnAborted":
        this.settle();
        this.note(`The turn was ended: ${event.reason}`, "warning");
        this.hooks.working?.(false);
        break;
      default:
        break;
    }
  }

  /** @param {Happened} event */
  turnDiff(event) {
    if (!event.unified_diff && !event.not_shown?.length) return;
    const files = (event.unified_diff.match(/^diff --git /gm) ?? []).length || 1;
    this.add(
      h(
        "details",
        { class: "cell turn-diff" },
        h("summary", {}, `This turn changed ${plural(files, "file")}`),
        event.unified_diff ? unifiedDiff(event.unified_diff) : null,
        (event.not_shown ?? []).map((/** @type {string} */ text) => h("p", { class: "note untrusted" }, visible(text))),
      ),
    );
  }

  /** @param {string} name @param {string} task */
  agent(name, task) {
    let found = this.agents.get(name);
    if (!found) {
      this.settle();
      const transcript = new Transcript({ changed: this.hooks.changed });
      const status = h("span", { class: "status working" }, "working");
      this.add(h("details", { class: "cell subagent" }, h("summary", {}, h("span", { class: "tool" }, "subagent"), h("code", { class: "call-title" }, `${visibleLine(name)}${task ? `: ${shortened(visibleLine(task), 160)}` : ""}`), status), transcript.element));
      found = { transcript, status };
      this.agents.set(name, found);
    }
    return found;
  }

  /** Draws what is written down of a conversation. @param {any[]} items */
  history(items) {
    for (const item of items) {
      if (item.type === "message") {
        const text = textOf(item);
        if (item.role === "user") this.user(text);
        else if (item.role === "assistant") this.finish("message", text);
      } else if (item.type === "reasoning" && item.summary) {
        this.finish("thought", item.summary);
      } else if (item.type === "tool_call") {
        this.call(item.call_id, item.name, item.input?.arguments ?? item.input?.text ?? "");
      } else if (item.type === "tool_call_output") {
        this.call(item.call_id).done(item);
      }
    }
  }
}

/** @param {any} item */
export function textOf(item) {
  const parts = Array.isArray(item.content) ? item.content : [];
  return parts.map((/** @type {any} */ part) => (typeof part.text === "string" ? part.text : "[a picture]")).join("");
}
