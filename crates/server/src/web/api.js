// Everything that the console asks of its server. The token stays in this file.

/** The server says something at least every 15 s; a stream that is silent for so long is dead. */
const SILENCE_MS = 45_000;
/** No event is larger. */
const LARGEST_EVENT = 32 * 1024 * 1024;

let token = "";

/** A refusal of the server, with its status and its words. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Takes what stands in the address. Says whether there is a token then. */
export async function findToken() {
  const given = location.hash;
  if (!given.startsWith("#code=") && !given.startsWith("#token=")) return token !== "";
  // It must not stay where somebody could read it off the screen.
  history.replaceState(null, "", location.pathname);
  await takeToken(given);
  return token !== "";
}

/**
 * Takes what a person was given: an address with a code, which counts once, or a token. It is kept in memory and
 * nowhere else: what a browser stores, any command can read.
 * @param {string} given
 */
export async function takeToken(given) {
  const text = given.trim();
  const behind = new URLSearchParams(text.replace(/^[^#]*#/, ""));
  const code = text.includes("#") ? behind.get("code") : null;
  token = "";
  if (code) token = (await call("POST", "/console/sign-in", { code })).token;
  else token = (text.includes("#") ? behind.get("token") : text) ?? "";
}

export function forgetToken() {
  token = "";
}

/**
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>}
 */
export async function call(method, path, body, headers = {}) {
  /** @type {RequestInit} */
  const request = { method, headers: token ? { Authorization: `Bearer ${token}`, ...headers } : headers, cache: "no-store" };
  if (body !== undefined) {
    request.body = JSON.stringify(body);
    /** @type {Record<string, string>} */ (request.headers)["Content-Type"] = "application/json";
  }
  const response = await fetch(path, request);
  if (!response.ok) throw await refusal(response);
  if (response.status === 204) return null;
  const text = await response.text();
  return text === "" ? null : JSON.parse(text);
}

/** @param {string} path @returns {Promise<any>} */
export const get = (path) => call("GET", path);

/** @param {string} path @param {any} [body] @param {Record<string, string>} [headers] @returns {Promise<any>} */
export const post = (path, body, headers) => call("POST", path, body, headers);

/** @param {string} path @returns {Promise<any>} */
export const remove = (path) => call("DELETE", path);

/** @param {Response} response */
async function refusal(response) {
  let words = `${response.status} ${response.statusText}`.trim();
  try {
    const problem = await response.json();
    words = problem.detail || problem.title || words;
  } catch {
    // Whoever answered is not the server, or was cut off.
  }
  return new Refused(response.status, words);
}

/**
 * @typedef {object} Listener
 * @property {(event: {id: string, type: string, data: string}) => void} event
 * @property {(up: boolean, why?: string) => void} [state] whether there is a connection
 * @property {(refused: Refused) => void} [refused] it was refused, and is not tried again
 * @property {() => void} [ended] the server has nothing more to say, and it is not tried again
 */

/** Streams that are open, so that the banner can tell when one is not. @type {Set<Stream>} */
const streams = new Set();
/** @type {((down: boolean) => void) | null} */
let watcher = null;

/** @param {(down: boolean) => void} watch */
export function watchConnection(watch) {
  watcher = watch;
}

/** A stream of events that comes again when it is cut off, and goes on where it was. */
export class Stream {
  /**
   * @param {string} path
   * @param {Listener} listener
   * @param {{lastId?: string, whileHidden?: boolean, endsFor?: (type: string) => boolean}} [options] a browser has
   *   few connections for one server, so a stream that nobody can see rests unless it is `whileHidden`
   */
  constructor(path, listener, options = {}) {
    this.path = path;
    this.listener = listener;
    this.lastId = options.lastId ?? "";
    this.whileHidden = options.whileHidden ?? false;
    this.endsFor = options.endsFor ?? (() => false);
    this.closed = false;
    this.up = false;
    this.wait = 500;
    /** @type {AbortController | null} */
    this.abort = null;
    this.seen = () => this.look();
    document.addEventListener("visibilitychange", this.seen);
    window.addEventListener("online", this.seen);
    streams.add(this);
    void this.run();
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    document.removeEventListener("visibilitychange", this.seen);
    window.removeEventListener("online", this.seen);
    streams.delete(this);
    this.abort?.abort();
    this.wake?.();
    tell();
  }

  /** The page was hidden or shown. */
  look() {
    if (document.hidden && !this.whileHidden) {
      this.abort?.abort();
    } else {
      this.wait = 500;
      this.wake?.();
    }
  }

  async run() {
    while (!this.closed) {
      if (document.hidden && !this.whileHidden) {
        await this.rest(60_000);
        continue;
      }
      try {
        const over = await this.follow();
        if (over) {
          this.listener.ended?.();
          this.close();
          return;
        }
      } catch (error) {
        if (error instanceof Refused && error.status < 500 && error.status !== 429 && error.status !== 408) {
          this.listener.refused?.(error);
          this.close();
          return;
        }
      }
      if (this.closed) return;
      if (!document.hidden || this.whileHidden) this.say(false);
      await this.rest(this.wait);
      this.wait = Math.min(this.wait * 2, 8000);
    }
  }

  /** Reads until it is cut off. Says whether it has come to its end. */
  async follow() {
    const abort = (this.abort = new AbortController());
    let watchdog = setTimeout(() => abort.abort(), SILENCE_MS);
    try {
      /** @type {Record<string, string>} */
      const headers = { Authorization: `Bearer ${token}`, Accept: "text/event-stream" };
      if (this.lastId !== "") headers["Last-Event-ID"] = this.lastId;
      const response = await fetch(this.path, { headers, signal: abort.signal, cache: "no-store" });
      if (!response.ok) throw await refusal(response);
      if (!response.body) throw new Error("no body");
      this.wait = 500;
      this.say(true);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return false;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), SILENCE_MS);
        for (const event of parser.feed(value)) {
          if (this.closed) return true;
          if (event.id !== "") this.lastId = event.id;
          this.listener.event(event);
          if (this.endsFor(event.type)) {
            abort.abort();
            return true;
          }
        }
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  /** @param {boolean} up */
  say(up) {
    if (this.up === up && up) return;
    this.up = up;
    this.listener.state?.(up);
    tell();
  }

  /** @param {number} ms */
  rest(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }
}

function tell() {
  watcher?.([...streams].some((stream) => !stream.up && stream.wait > 500));
}

/** The lines of an event stream, as they come. */
export class Parser {
  constructor() {
    this.rest = "";
    this.type = "";
    this.id = "";
    /** @type {string[]} */
    this.data = [];
    this.length = 0;
  }

  fresh() {
    this.type = "";
    this.id = "";
    this.data = [];
    this.length = 0;
  }

  /** @param {string} text */
  *feed(text) {
    this.rest += text;
    let from = 0;
    for (let end = this.rest.indexOf("\n"); end >= 0; end = this.rest.indexOf("\n", from)) {
      const line = this.rest.slice(from, end).replace(/\r$/, "");
      from = end + 1;
      if (line === "") {
        if (this.data.length > 0) yield { id: this.id, type: this.type || "message", data: this.data.join("\n") };
        this.fresh();
      } else {
        this.take(line);
      }
    }
    this.rest = this.rest.slice(from);
    if (this.rest.length + this.length > LARGEST_EVENT) throw new Error("an event is too large");
  }

  /** @param {string} line */
  take(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") {
      this.data.push(value);
      this.length += value.length;
    } else if (name === "event") {
      this.type = value;
    } else if (name === "id") {
      this.id = value;
    }
  }
}

/**
 * The bytes of a chunk as the server wrote them.
 *
 * @param {{encoding: string, chunk: string}} delta
 */
export function bytesOf(delta) {
  if (delta.encoding !== "base64") return new TextEncoder().encode(delta.chunk);
  const binary = atob(delta.chunk);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
