// What every view stands on: markup, state, addresses, the JSON API, words and numbers.
import { h } from "./vendor/preact.js";
import { useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";
import { effect, signal } from "./vendor/signals-core.js";

export const html = htm.bind(h);
export { effect, signal, useEffect, useMemo, useRef, useState };

export const base = document.documentElement.dataset.base;

// State

export const session = signal(undefined); // undefined: not asked yet; null: nobody
export const home = signal(null);
export const agents = signal([]); // where there are several

/** Say who the agents are. */
export const meet = (given = []) => void (JSON.stringify(given) === JSON.stringify(agents.peek()) || (agents.value = given));

/** The name of the agent that something is stored of; what has no name is the default one's. Empty where there is only one. */
export const agentOf = (stored) => stored || agents.peek().find((one) => one.default)?.name || "";
export const address = signal(readAddress());

/** What stands before the last name of where one is, beside what the address says. */
export const crumbs = signal([]);

export function useCrumbs(given) {
  useEffect(() => ((crumbs.value = given), () => (crumbs.value = [])), [JSON.stringify(given)]);
}

/** The value of a signal; the component is drawn again when it changes. */
export function useSignal(one) {
  const [value, set] = useState(one.peek());
  useEffect(() => effect(() => set(one.value)), [one]);
  return value;
}

/** Something stored in this browser, which may forbid it. */
export function remembered(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(`tertulia.${name}`);
    localStorage.setItem(`tertulia.${name}`, value);
  } catch {
    return null;
  }
}

// Addresses

function readAddress() {
  const path = decodeURI(location.pathname).slice(base.length).replace(/\/+$/, "") || "/";
  return { path, query: Object.fromEntries(new URLSearchParams(location.search)) };
}

/** The address of a view. What is undefined, null or empty is not in the query. */
export function to(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given).toString();
  return base + path + (search ? `?${search}` : "");
}

export function go(url, { replace = false, focus = true } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", url);
  address.value = readAddress();
  if (replace || !focus) return;
  scrollTo(0, 0);
  requestAnimationFrame(() => document.querySelector("main")?.focus({ preventScroll: true }));
}

/** Change the query of the view that is shown. */
export function setQuery(changes) {
  const { path, query } = address.peek();
  go(to(path, { ...query, ...changes }), { replace: true });
}

addEventListener("popstate", () => (address.value = readAddress()));
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.origin !== location.origin || link.hasAttribute("download") || link.target) return;
  const path = link.pathname.slice(base.length);
  if (!link.pathname.startsWith(`${base}/`) || /^\/(?:api|static|r)\//.test(path)) return; // a room is another document: it may use the microphone
  event.preventDefault();
  go(link.href);
});

// The JSON API

export const api = (path) => `${base}/api${path}`;

/** Ask the server; what a browser says of one that is not there is in its own words. */
export const reach = (path, options) =>
  fetch(api(path), options).catch((error) => {
    throw error.name === "AbortError" ? error : new Error(t("unreachable"));
  });

export async function ask(path, { method = "GET", body, signal: aborted } = {}) {
  const options = { method, credentials: "same-origin", signal: aborted };
  if (body !== undefined) {
    options.headers = { "content-type": "application/json" };
    options.body = JSON.stringify(body);
  }
  const response = await reach(path, options);
  const answer = response.status === 204 ? null : await response.json().catch((error) => {
    if (response.ok) throw error; // cut off, or given up
    return {};
  });
  if (response.status === 401) session.value = null;
  if (!response.ok) throw Object.assign(new Error(answer.error || response.statusText), { status: response.status });
  return answer;
}

/** Read anew what home shows: the rail counts it too. */
export const readHome = () => ask("/home").then((value) => (meet(value.agents), (home.value = value)), () => {});

const KEPT = 40;
const answers = new Map(); // the last answers, so that a view is there at once when one comes back to it

/** The answer of the API for a path; with *every*, asked again after so many seconds while the page is seen. */
export function useApi(path, { every = 0 } = {}) {
  const [state, setState] = useState({});
  const [asked, askAgain] = useState(0);
  useEffect(() => {
    if (!path) return undefined;
    const aborted = new AbortController();
    ask(path, { signal: aborted.signal })
      .then((data) => {
        answers.delete(path);
        answers.set(path, data);
        if (answers.size > KEPT) answers.delete(answers.keys().next().value);
        setState({ path, data });
      })
      .catch((error) => error.name !== "AbortError" && setState({ path, error, data: answers.get(path) }));
    return () => aborted.abort();
  }, [path, asked]);
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => document.hidden || askAgain((n) => n + 1), every * 1000);
    return () => clearInterval(timer);
  }, [every]);
  const current = state.path === path ? state : { data: answers.get(path) };
  return { data: current.data, error: current.error, reload: () => askAgain((n) => n + 1) };
}

// Words

const LANGUAGES = ["en", "uk"];
let words = {};
export let language = "en";

export async function loadWords(wanted) {
  language = LANGUAGES.find((one) => wanted?.startsWith(one)) || "en";
  words = await (await fetch(`${base}/static/${language}.json`)).json();
  document.documentElement.lang = language;
  plural = new Intl.PluralRules(language);
}

let plural = new Intl.PluralRules("en");

/** A text of the page. One with forms for numbers takes that of `n`. */
export function t(key, values = {}) {
  let text = words[key] ?? key;
  if (typeof text === "object") text = text[plural.select(values.n)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name] ?? "";
    return typeof value === "number" ? number(value) : value;
  });
}

/** The same for values of which new ones may come: what has no words is shown as it is. */
export const named = (group, value) => words[`${group}.${value}`] ?? value;

/** A sentence of the bot's own in the language of the page, where it is one that always is the same but for its numbers. */
export const said = (text = "") => text.split("; ").map((one) => {
  const numbers = [];
  const key = one.replace(/\d[\d,.]*(?: ?%)?/g, (each) => (numbers.push(each), "#"));
  const [head, rest] = key.startsWith("it says ") ? ["it says", one.slice(8)] : [key, ""];
  const known = named("said", head);
  return known === head ? one : known.replace(/#/g, () => numbers.shift()) + (rest && ` ${rest}`);
}).join("; ");

// Numbers and times. A thin space goes before a unit.

export const number = (value) => Math.round(value).toLocaleString("en-US");
export const money = (value, digits = 4) => `$${value.toFixed(digits)}`;
export const share = (part, whole) => `${whole ? Math.round((100 * part) / whole) : 0} %`;

export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ${t("unit.ms")}`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} ${t("unit.s")}`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} ${t("unit.min")} ${Math.round(seconds % 60)} ${t("unit.s")}`;
  return `${Math.floor(minutes / 60)} ${t("unit.h")} ${minutes % 60} ${t("unit.min")}`;
}

export function bytes(value) {
  if (value < 1000) return `${value} B`;
  return value < 1e6 ? `${(value / 1e3).toFixed(1)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

export const seconds = (from, until) => (new Date(until) - new Date(from)) / 1000;
export const clock = (at) => format(at, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
export const exact = (at) =>
  format(at, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });
export const day = (at) => format(at, { day: "numeric", month: "short" });
export const longDay = (at) => format(at, { weekday: "long", day: "numeric", month: "long" });
export const isToday = (at) => new Date(at).toDateString() === new Date().toDateString();
export const when = (at) => (isToday(at) ? clock(at) : `${day(at)}, ${clock(at)}`);
const format = (at, options) => new Date(at).toLocaleString(language === "en" ? "en-GB" : language, options);

export function ago(at) {
  const minutes = Math.max(0, seconds(at, Date.now()) / 60);
  if (minutes < 1) return t("ago.now");
  if (minutes < 60) return `${Math.round(minutes)} ${t("unit.min")}`;
  if (minutes < 1440) return `${Math.round(minutes / 60)} ${t("unit.h")}`;
  return day(at);
}

// Values of the API

export const short = (id) => id.slice(0, 8);
export const ms = (at) => new Date(at).getTime();
export const textOf = (parts = []) =>
  parts.map((part) => (part.kind === "text" ? part.text : part.kind === "media" ? mediaWords(part) : "")).filter(Boolean).join("\n");
export const mediaWords = (media) => `[${media.rendered_text || media.label || named("media", media.media_kind)}]`;
export const placeName = (place) => place.title || place.id;
export const placeKind = (place) => `${title(place.service || place.platform)}, ${named("kind", place.kind)}`;
export const title = (word) => word.charAt(0).toUpperCase() + word.slice(1);
