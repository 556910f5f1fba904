// Keys. None of them forgets, sends again or drops.
import { address, go, setQuery, to } from "./core.js";

const ROOMS = { h: "/", p: "/places", r: "/runs", m: "/people", o: "/outbox" };
const SOON = 1200; // milliseconds between `g` and its second key

let pending = 0; // when `g` was pressed

/** Do what a key stands for, unless somebody writes. */
export function press(event, { help, theme, place }) {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || target.isContentEditable) return;
  if (target.closest?.("input:not([type=checkbox]), textarea, select, dialog")) return;
  const after = Date.now() - pending < SOON;
  pending = 0;
  const action = after && ROOMS[key] ? () => go(to(ROOMS[key])) : actions(event, { help, theme, place })[key];
  if (!action) return;
  if (action() !== false) event.preventDefault();
}

const click = (selector) => {
  const found = document.querySelector(selector);
  found?.click();
  return Boolean(found);
};

const actions = (event, { help, theme, place }) => ({
  "/": () => document.getElementById("search")?.focus(),
  g: () => void (pending = Date.now()),
  j: () => walk(1),
  k: () => walk(-1),
  Escape: () => history.back(),
  "[": () => step(-1),
  "]": () => step(1),
  w: () => onRun() && setQuery({ tab: address.peek().query.tab === "wire" ? "" : "wire" }),
  c: () => click("#copy-curl"),
  x: () => { const row = document.activeElement?.closest(".strip"); row?.querySelector("input")?.click(); return Boolean(row); },
  d: () => { const found = document.getElementById("difference"); found?.scrollIntoView(); found?.querySelector("button")?.focus(); return Boolean(found); },
  y: () => { const row = document.activeElement?.closest(".message"); (row || document).querySelector?.("a.why")?.click(); return Boolean(row); },
  s: () => click(".foot .act button, .message .stop"),
  t: theme,
  "?": help,
  ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7].map((at) => [String(at), () => click(`[data-layer="${at}"]`)])),
});

const onRun = () => address.peek().path.startsWith("/run/");

function step(by) {
  if (!onRun()) return false;
  const tabs = [...document.querySelectorAll(".request header .tabs:first-of-type button")];
  const now = tabs.findIndex((one) => one.getAttribute("aria-pressed") === "true");
  tabs[now + by]?.click();
  return true;
}

/** Move to the next or the previous row: to its link, or to itself. */
function walk(by) {
  const rows = [...document.querySelectorAll("main tr.row, main [data-row]")];
  if (!rows.length) return false;
  const now = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[now < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, now + by))];
  const goal = next.hasAttribute("tabindex") ? next : next.querySelector("a, button, input") || next;
  goal.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}
