// Text from a model, a repository or a program, fit to be shown: nothing is left out, reordered or invisible.
// The table is that of `sandgate_protocol::visible`.

/** Characters that take no room, as pairs of the first and the last. */
const INVISIBLE = [
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x2029],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffc],
  [0x13430, 0x13442],
  [0x1bca0, 0x1bca3],
  [0x1d159, 0x1d159],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];

const MARK = /\p{M}/u;
/** How many marks one letter may carry: hundreds of them reach into other lines. */
const MOST_MARKS = 4;

/** @param {number} point */
function isHidden(point) {
  const control = point < 0x20 || (point >= 0x7f && point < 0xa0);
  const half = point >= 0xd800 && point <= 0xdfff;
  return control || half || (point >= 0xad && INVISIBLE.some(([first, last]) => point >= first && point <= last));
}

/** @param {number} point */
function spelled(point) {
  if (point === 0x0a) return "\\n";
  if (point === 0x0d) return "\\r";
  if (point === 0x09) return "\\t";
  return `\\u{${point.toString(16)}}`;
}

/**
 * On one line, with everything spelled out that does not show itself.
 *
 * @param {string} text
 */
export function visibleLine(text) {
  let shown = "";
  let marks = 0;
  for (const character of String(text)) {
    const point = /** @type {number} */ (character.codePointAt(0));
    marks = point > 0x2ff && MARK.test(character) ? marks + 1 : 0;
    shown += isHidden(point) || marks > MOST_MARKS ? spelled(point) : character;
  }
  return shown;
}

/**
 * The same with its line breaks, and with tabs as the room that they take.
 *
 * @param {string} text
 */
export function visible(text) {
  const lines = String(text).split("\n");
  return lines.map((line) => visibleLine(line.replaceAll("\t", "    "))).join("\n");
}

/**
 * A text of at most so many characters, with what is missing said.
 *
 * @param {string} text
 * @param {number} most
 */
export function shortened(text, most) {
  return text.length <= most ? text : `${text.slice(0, most)} […${text.length - most} more characters]`;
}

/**
 * Words as a shell would read them back.
 *
 * @param {string[] | string} words
 */
export function quoted(words) {
  if (typeof words === "string") return visibleLine(words);
  const quote = (/** @type {string} */ word) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
  return words.map((word) => visibleLine(quote(word))).join(" ");
}

/**
 * A command as a person would write it: the script alone where a shell is only there to read it.
 *
 * @param {string[] | string} words
 */
export function commandLine(words) {
  if (typeof words === "string") return visibleLine(words);
  const [program = "", flag = "", script] = words;
  const isShell = words.length === 3 && /(^|\/)(ba|z|da|k)?sh$/.test(program) && /^-l?c$/.test(flag);
  return isShell ? visibleLine(script) : quoted(words);
}
