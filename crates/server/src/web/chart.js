// Commands, approvals and denials over time: bars, and the same numbers as a table.

import { count, h, svg } from "./dom.js";

/** @typedef {import("./types.js").Bucket} Bucket */

const SERIES = /** @type {const} */ ([
  ["commands", "Commands"],
  ["approvals", "Approvals"],
  ["denials", "Denials"],
]);
const HEIGHT = 190;
const LEFT = 40;
const BOTTOM = 24;
const TOP = 10;
/** So many columns are drawn; of more, the newest. */
const MOST = 60;
/** A phone gets a drawing of its own, so that its letters stay as large as all others. */
const PHONE = "(max-width: 760px)";

/**
 * Puts empty buckets where nothing was recorded, so that time goes on evenly.
 *
 * @param {Bucket[]} buckets
 * @param {"hour" | "day"} bucket
 * @param {number} since
 */
export function filled(buckets, bucket, since) {
  const length = bucket === "hour" ? 3_600_000 : 86_400_000;
  const known = new Map(buckets.map((one) => [Math.floor(new Date(one.start).getTime() / length), one]));
  /** @type {Bucket[]} */
  const found = [];
  for (let at = Math.floor(since / length) + 1; at <= Math.floor(Date.now() / length); at += 1) {
    found.push(known.get(at) ?? { start: new Date(at * length).toISOString(), commands: 0, approvals: 0, denials: 0 });
  }
  return found;
}

/** The end of an axis: the next round number. @param {number} most */
function round(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  const found = [1, 2, 4, 6, 8, 10].map((step) => step * power).find((value) => value >= most);
  return Math.max(found ?? most, 4);
}

/**
 * @param {Bucket[]} all
 * @param {"hour" | "day"} bucket
 */
export function chart(all, bucket) {
  const buckets = all.slice(-MOST);
  const label = (/** @type {Bucket} */ one) => {
    const date = new Date(one.start);
    return bucket === "hour" ? date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }) : date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  };
  const total = (/** @type {keyof Bucket} */ name) => buckets.reduce((sum, one) => sum + Number(one[name]), 0);
  return h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      {},
      SERIES.map(([name, title]) => h("span", { class: `legend ${name}` }, h("strong", {}, count(total(name))), ` ${title.toLowerCase()}`)),
    ),
    drawing(buckets, label),
    h(
      "details",
      { class: "numbers" },
      h("summary", {}, "As a table"),
      h(
        "div",
        { class: "table-wrap", tabindex: "0", role: "region", "aria-label": "Numbers over time" },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, bucket === "hour" ? "Hour" : "Day"), SERIES.map(([, title]) => h("th", { scope: "col" }, title)))),
          h("tbody", {}, buckets.map((one) => h("tr", {}, h("th", { scope: "row" }, new Date(one.start).toLocaleString(undefined, bucket === "hour" ? { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : { day: "numeric", month: "short" })), SERIES.map(([name]) => h("td", {}, count(one[name])))))),
        ),
      ),
    ),
  );
}

/**
 * @param {Bucket[]} buckets
 * @param {(one: Bucket) => string} label
 */
function drawing(buckets, label) {
  const phone = matchMedia(PHONE).matches;
  const width = phone ? 420 : 960;
  const top = round(Math.max(...buckets.flatMap((one) => SERIES.map(([name]) => one[name]))));
  const slot = (width - LEFT) / Math.max(buckets.length, 12);
  const bar = Math.min(14, (slot - (phone ? 1 : 4)) / SERIES.length);
  const y = (/** @type {number} */ value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const every = Math.ceil(buckets.length / (phone ? 5 : 10));
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": "Commands, approvals and denials over time. The table below has the numbers." },
    [0, 0.5, 1].map((part) => [
      svg("line", { class: "grid", x1: LEFT, x2: width, y1: y(top * part), y2: y(top * part) }),
      svg("text", { class: "axis", x: LEFT - 8, y: y(top * part) + 4, "text-anchor": "end" }, count(Math.round(top * part))),
    ]).flat(),
    buckets.map((one, index) => {
      const left = LEFT + index * slot + (slot - bar * SERIES.length) / 2;
      return svg(
        "g",
        {},
        svg("title", {}, `${label(one)}: ${SERIES.map(([name, title]) => `${count(one[name])} ${title.toLowerCase()}`).join(", ")}`),
        svg("rect", { class: "hover", x: LEFT + index * slot, y: TOP, width: slot, height: HEIGHT - TOP - BOTTOM }),
        SERIES.map(([name], place) => {
          const height = one[name] === 0 ? 0 : Math.max(2, HEIGHT - BOTTOM - y(one[name]));
          return svg("rect", { class: `bar ${name}`, x: (left + place * bar).toFixed(1), y: (HEIGHT - BOTTOM - height).toFixed(1), width: Math.max(bar - (phone ? 0.5 : 1.5), 1).toFixed(1), height: height.toFixed(1), rx: Math.min(2, bar / 4) });
        }),
        index % every === 0 ? svg("text", { class: "axis", x: LEFT + (index + 0.5) * slot, y: HEIGHT - 6, "text-anchor": "middle" }, label(one)) : null,
      );
    }),
  );
}
