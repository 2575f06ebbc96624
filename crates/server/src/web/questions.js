// The open questions, as the server tells of them, and the answers that were given in this tab.

import { get, post, Stream } from "./api.js";
import { tellOfQuestions } from "./notify.js";

/** @typedef {import("./types.js").OpenQuestion} OpenQuestion */
/** @typedef {import("./types.js").Answer} Answer */

/** @type {OpenQuestion[]} */
let open = [];
let known = false;
/** @type {Set<() => void>} */
const watchers = new Set();
/** What was answered here, the newest first. @type {{question: OpenQuestion, answer: Answer, said: string, when: string}[]} */
export const answered = [];
const MOST_ANSWERED = 20;

/** @type {Stream | null} */
let stream = null;

/** @param {() => void} [refused] */
export function followQuestions(refused) {
  stream?.close();
  stream = new Stream(
    "/approvals/events",
    {
      event: ({ type, data }) => {
        if (type === "approvals") take(JSON.parse(data));
      },
      refused: () => refused?.(),
    },
    { whileHidden: true },
  );
}

export function leaveQuestions() {
  stream?.close();
  stream = null;
  open = [];
  known = false;
}

/** @param {any} told */
function take(told) {
  const now = /** @type {OpenQuestion[]} */ (Array.isArray(told) ? told : (told.approvals ?? []));
  const before = new Set(open.map((question) => question.id));
  const fresh = now.filter((question) => !before.has(question.id));
  open = now;
  known = true;
  tellOfQuestions(open, fresh);
  for (const watcher of watchers) watcher();
}

/** The questions that wait, the oldest first; nothing until the server has told. */
export function openQuestions() {
  return open;
}

export function areQuestionsKnown() {
  return known;
}

/**
 * Hears of every change, until what it returns is called.
 *
 * @param {() => void} watcher
 */
export function watchQuestions(watcher) {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

/**
 * The whole of a question, of which the list has the beginning.
 *
 * @param {OpenQuestion} question
 * @returns {Promise<OpenQuestion>}
 */
export function wholeQuestion(question) {
  return get(`/approvals/${encodeURIComponent(question.id)}`);
}

/**
 * @param {OpenQuestion} question
 * @param {Answer} answer
 * @param {string} said what that is in a few words
 */
export async function answerQuestion(question, answer, said) {
  await post(`/approvals/${encodeURIComponent(question.id)}`, answer);
  answered.unshift({ question, answer, said, when: new Date().toISOString() });
  answered.length = Math.min(answered.length, MOST_ANSWERED);
  for (const watcher of watchers) watcher();
}
