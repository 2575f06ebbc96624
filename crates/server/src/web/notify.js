// How a person hears that somebody waits for them, wherever they look: the tab's title and picture, a voice for
// screen readers, a notification if they allowed it, and a sound if they want one.

import { choices, plural } from "./dom.js";
import { shortened, visibleLine } from "./visible.js";

/** @typedef {import("./types.js").OpenQuestion} OpenQuestion */

const TITLE = "Sandgate";
let page = "";
let waiting = 0;

/** @param {string} name */
export function setPage(name) {
  page = name;
  retitle();
}

function retitle() {
  const name = page ? `${page} · ${TITLE}` : TITLE;
  document.title = waiting > 0 ? `(${waiting}) ${name}` : name;
}

/**
 * What waits now, and what of it is new.
 *
 * @param {OpenQuestion[]} all
 * @param {OpenQuestion[]} fresh
 */
export function tellOfQuestions(all, fresh) {
  waiting = all.length;
  retitle();
  drawBadge(waiting);
  if (fresh.length === 0) return;
  say(fresh.length === 1 ? `An approval waits: ${summary(fresh[0])}` : `${plural(fresh.length, "approval")} wait.`);
  if (choices.get("sound") === "on") beep();
  if (document.hidden || !document.hasFocus()) for (const question of fresh.slice(0, 3)) notify(question);
}

/** @param {OpenQuestion} asked */
export function summary(asked) {
  return shortened(visibleLine(asked.shown.summary), 120);
}

/** Says something to whoever listens instead of looking. @param {string} text */
export function say(text) {
  const live = document.getElementById("live");
  if (!live) return;
  live.textContent = "";
  setTimeout(() => (live.textContent = text), 50);
}

export function notificationState() {
  return "Notification" in window ? Notification.permission : "unsupported";
}

export async function askForNotifications() {
  if ("Notification" in window) await Notification.requestPermission();
  return notificationState();
}

/** @param {OpenQuestion} asked */
function notify(asked) {
  if (notificationState() !== "granted") return;
  try {
    const shown = new Notification("An approval waits", { body: summary(asked), tag: asked.id });
    shown.onclick = () => {
      window.focus();
      location.hash = "#/approvals";
      shown.close();
    };
  } catch {
    // Some phones have notifications only for installed pages.
  }
}

export function beep() {
  try {
    const audio = new AudioContext();
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    tone.frequency.value = 660;
    volume.gain.setValueAtTime(0.08, audio.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.35);
    tone.connect(volume).connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.35);
    tone.onended = () => void audio.close();
  } catch {
    // There is nothing to make a sound with.
  }
}

/** The tab's picture: the gate, with a dot and a number while somebody waits. @param {number} number */
export function drawBadge(number) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.fillStyle = "#0f766e";
  pen.beginPath();
  pen.roundRect(0, 0, 64, 64, 14);
  pen.fill();
  pen.strokeStyle = "#fff";
  pen.lineWidth = 6;
  pen.lineCap = "round";
  pen.stroke(new Path2D("M16 50V30a16 16 0 0 1 32 0v20M28 50V34a4 4 0 0 1 8 0v16"));
  if (number > 0) {
    pen.fillStyle = "#dc2626";
    pen.beginPath();
    pen.arc(46, 18, 18, 0, 7);
    pen.fill();
    pen.fillStyle = "#fff";
    pen.font = "bold 26px sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(number > 9 ? "9+" : String(number), 46, 19);
  }
  const link = /** @type {HTMLLinkElement | null} */ (document.querySelector("link[rel=icon]"));
  if (link) link.href = canvas.toDataURL("image/png");
}
