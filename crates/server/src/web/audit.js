// The audit as a timeline: the records of a call together, the newest first, to be searched and filtered.

import { get } from "./api.js";
import { chart, filled } from "./chart.js";
import { fill, h, plural } from "./dom.js";
import { commandLine, quoted, shortened, visible, visibleLine } from "./visible.js";

/** @typedef {import("./types.js").AuditEntry} AuditEntry */

const PAGE = 200;
const SEARCH_AFTER_MS = 250;
const KINDS = ["call_asked", "judged", "decided", "granted", "began", "ended", "patch_applied", "amended", "session_started", "session_ended", "note", "torn", "damaged", "unrecorded"];
const SPANS = /** @type {[string, string, "hour" | "day", number][]} */ ([
  ["day", "24 hours", "hour", 24],
  ["week", "7 days", "day", 24 * 7],
  ["month", "30 days", "day", 24 * 30],
]);

/**
 * @param {HTMLElement} root
 * @param {{role: string}} me
 */
export function auditPage(root, me) {
  if (me.role !== "approver") {
    fill(root, h("div", { class: "page" }, h("h1", {}, "Audit"), h("div", { class: "empty" }, h("h2", {}, "Not with this token"), h("p", {}, "The record of all sessions is shown to the approver only. ", h("code", {}, "sandgate console"), " prints the approver's address."))));
    return { key: () => false, close() {} };
  }
  const search = h("input", { type: "search", name: "q", placeholder: "Search commands, paths, rules, reasons", "aria-label": "Search", maxlength: 500, spellcheck: "false" });
  const kind = h("select", { name: "kind", "aria-label": "Kind of record" }, h("option", { value: "" }, "All kinds"), KINDS.map((name) => h("option", { value: name }, name.replaceAll("_", " "))));
  const session = h("input", { type: "text", name: "session", placeholder: "Session", "aria-label": "Session", maxlength: 200, spellcheck: "false", autocomplete: "off" });
  const span = h("select", { name: "span", "aria-label": "Time of the chart" }, SPANS.map(([value, words]) => h("option", { value }, words)));
  const figure = h("div", { class: "chart-place" });
  const found = h("p", { class: "lead", role: "status" });
  const timeline = h("div", { class: "timeline" });
  const more = h("button", { type: "button", class: "button", hidden: true, onclick: () => void load(true) }, "Show older");
  /** @type {AuditEntry[]} */
  let records = [];
  /** @type {any} */
  let next = null;
  let round = 0;
  let stopped = false;
  /** @type {number | undefined} */
  let timer;

  const load = async (/** @type {boolean} */ older) => {
    const mine = (round += 1);
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (search.value.trim()) query.set("q", search.value.trim());
    if (kind.value) query.set("kind", kind.value);
    if (session.value.trim()) query.set("session", session.value.trim());
    if (older && next !== null && next !== undefined) query.set("before", String(next));
    try {
      const answer = await get(`/audit?${query}`);
      if (stopped || mine !== round) return;
      records = older ? [...records, ...answer.records] : answer.records;
      next = answer.next;
      more.hidden = next === null || next === undefined;
      found.textContent = `${plural(records.length, "record")}${more.hidden ? "" : ", and there are older ones"}`;
      fill(timeline, drawn(records, (id) => { session.value = id; void load(false); }));
    } catch (error) {
      if (!stopped && mine === round) found.textContent = visible(error instanceof Error ? error.message : String(error));
    }
  };
  const stats = async () => {
    const [, , bucket, hours] = SPANS.find(([value]) => value === span.value) ?? SPANS[0];
    const since = Date.now() - hours * 3_600_000;
    try {
      const { buckets } = await get(`/audit/stats?bucket=${bucket}&since=${encodeURIComponent(new Date(since).toISOString())}`);
      if (!stopped) fill(figure, chart(filled(buckets, bucket, since), bucket));
    } catch (error) {
      if (!stopped) fill(figure, h("p", { class: "empty-line" }, visible(error instanceof Error ? error.message : String(error))));
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void load(false), SEARCH_AFTER_MS);
  };
  search.addEventListener("input", soon);
  session.addEventListener("input", soon);
  kind.addEventListener("change", () => void load(false));
  span.addEventListener("change", () => void stats());
  fill(
    root,
    h(
      "div",
      { class: "page" },
      h("div", { class: "page-head" }, h("h1", {}, "Audit"), span),
      figure,
      h("form", { class: "filters", role: "search", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); void load(false); } }, search, kind, session),
      found,
      timeline,
      more,
    ),
  );
  void load(false);
  void stats();
  return {
    /** @param {KeyboardEvent} event */
    key(event) {
      if (event.key !== "/") return false;
      search.focus();
      return true;
    },
    close() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/**
 * @param {AuditEntry[]} records
 * @param {(session: string) => void} only
 */
function drawn(records, only) {
  /** @type {Map<string, AuditEntry[]>} */
  const groups = new Map();
  const newest = [...records].sort((a, b) => b.seq - a.seq);
  for (const entry of newest) {
    const call = entry.record.call_id;
    const name = call ? `${entry.session}/${call}` : `#${entry.seq}`;
    const group = groups.get(name);
    if (group) group.unshift(entry);
    else groups.set(name, [entry]);
  }
  /** @type {HTMLElement[]} */
  const rows = [];
  let day = "";
  for (const group of groups.values()) {
    const date = new Date(group[0].time);
    const name = date.toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
    if (name !== day) rows.push(h("h2", { class: "day" }, name));
    day = name;
    rows.push(row(group, date, only));
  }
  return rows;
}

/**
 * @param {AuditEntry[]} group
 * @param {Date} date
 * @param {(session: string) => void} only
 */
function row(group, date, only) {
  const of = (/** @type {string} */ type) => group.filter(({ record }) => record.type === type).map(({ record }) => record);
  const asked = of("call_asked")[0];
  const decided = of("decided").at(-1);
  const ended = of("ended").at(-1);
  const judged = of("judged")[0];
  const first = group[0].record;
  const blocked = of("ended").reduce((sum, record) => sum + (record.denials?.length ?? 0) + (record.more_denials ?? 0), 0);
  const title = asked ? called(asked) : words(first);
  return h(
    "details",
    { class: "audit-row", "data-kind": first.type },
    h(
      "summary",
      {},
      h("time", { datetime: date.toISOString(), "data-fixed": true }, date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })),
      h("code", { class: "untrusted one-line" }, shortened(title, 300)),
      h(
        "span",
        { class: "badges" },
        judged?.class === "dangerous" ? h("span", { class: "badge bad" }, "dangerous") : null,
        decided ? h("span", { class: `badge ${isNo(decided.decision) ? "bad" : decided.by?.who === "person" ? "good" : ""}` }, `${String(decided.decision).replaceAll("_", " ")}${decided.by?.who ? ` · ${decided.by.who}` : ""}`) : null,
        blocked ? h("span", { class: "badge warn" }, `${blocked} blocked`) : null,
        ended?.exit_code !== undefined ? h("span", { class: `badge ${ended.exit_code === 0 ? "" : "warn"}` }, `exit ${ended.exit_code}`) : null,
        asked || decided ? null : h("span", { class: "badge" }, first.type.replaceAll("_", " ")),
      ),
    ),
    h(
      "ol",
      { class: "records" },
      group.map((entry) =>
        h(
          "li",
          {},
          h("h3", {}, h("span", { class: "number" }, `#${entry.seq}`), ` ${entry.record.type.replaceAll("_", " ")}`),
          h("dl", { class: "facts small untrusted" }, Object.entries(entry.record).filter(([name]) => name !== "type" && name !== "call_id").map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, h("code", {}, told(value)))]).flat()),
        ),
      ),
    ),
    h("p", { class: "session-line" }, "session ", h("button", { type: "button", class: "link", onclick: () => only(group[0].session) }, visibleLine(group[0].session))),
  );
}

/** What was asked for, as one line. @param {any} asked */
function called(asked) {
  if (!asked.argv?.length) return visibleLine(asked.tool);
  if (asked.tool === "apply_patch") return `apply_patch ${asked.argv.map(visibleLine).join(", ")}`;
  return commandLine(asked.argv);
}

/** @param {string} decision */
function isNo(decision) {
  return decision === "denied" || decision === "aborted" || decision === "forbidden";
}

/** @param {any} record */
function words(record) {
  const text = record.text ?? record.reason ?? record.what ?? record.why ?? (record.front_end ? `${record.front_end} in ${record.workspace ?? ""}` : record.type);
  return visibleLine(typeof text === "string" ? text : JSON.stringify(text));
}

/** @param {any} value */
function told(value) {
  if (Array.isArray(value) && value.every((word) => typeof word === "string")) return quoted(value);
  return shortened(visible(typeof value === "string" ? value : JSON.stringify(value)), 4000);
}
