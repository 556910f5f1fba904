// The page: who looks at it, its frame, the view of its address, and its keys.
import { render } from "./vendor/preact.js";
import {
  address, agentOf, agents, ago, ask, crumbs as ofView, go, home, html, language, loadWords, number, placeName, readHome, remembered, session, short, t, to, useEffect, useRef,
  useSignal, useState,
} from "./core.js";
import { Avatar, Icon, Loaded, Logo } from "./parts.js";
import { press } from "./keys.js";

const HOME_EVERY = 10; // seconds

// Each view by its address: its module is loaded when it is opened first. Groups of the pattern are its properties.
const VIEWS = [
  [/^\/$/, "Home", "home", () => import("./views/home.js")],
  [/^\/places$/, "PlacesPage", "places", () => import("./views/home.js")],
  [/^\/p\/(?<place>[^/]+)$/, "PlacePage", "places", () => import("./views/place.js")],
  [/^\/p\/(?<place>[^/]+)\/strata$/, "StrataPage", "places", () => import("./views/strata.js")],
  [/^\/p\/(?<place>[^/]+)\/decisions$/, "DecisionsPage", "places", () => import("./views/decisions.js")],
  [/^\/p\/(?<place>[^/]+)\/memory$/, "PlaceMemoryPage", "places", () => import("./views/memory.js")],
  [/^\/p\/(?<place>[^/]+)\/m\/(?<message>[^/]+)\/why$/, "KnownPage", "places", () => import("./views/known.js")],
  [/^\/r\/(?<room>[^/]+)$/, "RoomPage", "places", () => import("./views/room.js")],
  [/^\/runs$/, "RunsPage", "runs", () => import("./views/runs.js")],
  [/^\/run\/(?<run>[^/]+)$/, "RunPage", "runs", () => import("./views/run.js")],
  [/^\/people$/, "PeoplePage", "memory", () => import("./views/memory.js")],
  [/^\/people\/(?<person>[^/]+)$/, "PersonPage", "memory", () => import("./views/memory.js")],
  [/^\/agents$/, "AgentsPage", "agents", () => import("./views/agents.js")],
  [/^\/outbox$/, "OutboxPage", "outbox", () => import("./views/lists.js")],
  [/^\/tasks$/, "TasksPage", "tasks", () => import("./views/lists.js")],
  [/^\/media$/, "MediaPage", "media", () => import("./views/lists.js")],
  [/^\/usage$/, "UsagePage", "usage", () => import("./views/lists.js")],
  [/^\/search$/, "SearchPage", "search", () => import("./views/search.js")],
];

const LINKS = { home: "/", places: "/places", runs: "/runs", memory: "/people", agents: "/agents", outbox: "/outbox", tasks: "/tasks", media: "/media", usage: "/usage" };
const ON_PHONE = ["home", "places", "runs", "memory", "outbox"];
const OF_PLACE = { messages: "", strata: "/strata", decisions: "/decisions", memory: "/memory" };

/** The views that the rail leads to: a single agent needs none of its own. */
const linked = () => Object.keys(LINKS).filter((name) => name !== "agents" || agents.peek().length);

function viewOf(path) {
  for (const [pattern, name, part, load] of VIEWS) {
    const found = pattern.exec(path);
    if (found) return { name, part, load, given: { ...found.groups } };
  }
  return { name: "", part: "", given: {} };
}

const loaded = {}; // views by their names

function View({ name, load, given }) {
  const [error, setError] = useState(null);
  const [, drawn] = useState("");
  useEffect(() => {
    setError(null);
    if (name && !loaded[name]) load().then((module) => drawn((loaded[name] = module[name]).name), setError);
  }, [name]);
  if (!name) return html`<div class="page"><h1>${t("nowhere")}</h1><p><a href=${to("/")}>${t("nav.home")}</a></p></div>`;
  if (loaded[name]) return html`<${loaded[name]} key=${JSON.stringify(given)} ...${given} />`;
  return html`<${Loaded} of=${{ error }} />`;
}

function App() {
  const who = useSignal(session);
  const { path } = useSignal(address);
  const view = viewOf(path);
  if (who === undefined) return null;
  if (who && who.role !== "guest") return html`<${Frame} />`;
  if (view.given.room) return html`<${GuestFrame} view=${view} />`;
  return who ? html`<${Elsewhere} room=${who.room} />` : html`<${Login} />`;
}

/** A guest sees one room, and nothing else of the page. */
function GuestFrame({ view }) {
  useEffect(() => {
    document.title = `${document.querySelector("h1")?.textContent || ""} · Tertulia`;
    const pressed = (event) => ["j", "k", "s", "t"].includes(event.key) && press(event, { theme: nextTheme });
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
  return html`
    <div class="guest">
      <header class="top"><span class="brand"><${Logo} /></span><b class="grow">Tertulia</b><${Choices} /></header>
      <main id="main" tabindex="-1"><${View} key=${view.given.room} ...${view} /></main>
    </div>`;
}

function Elsewhere({ room }) {
  useEffect(() => location.replace(to(`/r/${encodeURIComponent(room)}`)), [room]);
  return null;
}

const Choices = () => html`
  <button type="button" class="plain icon-button" aria-label=${t("theme")} title=${t("theme")} onClick=${nextTheme}><${Icon} name="theme" /></button>
  <button type="button" class="plain icon-button" title=${t("language")} onClick=${nextLanguage}>${language === "en" ? "UK" : "EN"}<span class="hidden">, ${t("language")}</span></button>`;

function Frame() {
  const { path } = useSignal(address);
  const { name, part, load, given } = viewOf(path);
  const shown = useSignal(home);
  const [help, setHelp] = useState(false);
  const [more, setMore] = useState(false);
  useEffect(() => {
    const read = () => document.hidden || readHome();
    read();
    const timer = setInterval(read, HOME_EVERY * 1000);
    const pressed = (event) => press(event, { help: () => setHelp((open) => !open), theme: nextTheme, place: given.place });
    addEventListener("keydown", pressed);
    return () => (clearInterval(timer), removeEventListener("keydown", pressed));
  }, [given.place]);
  useEffect(() => {
    const heading = document.querySelector("h1")?.textContent || t(part ? `nav.${part}` : "nowhere");
    document.title = `${heading} · ${agentOf("") || shown?.agent || "Tertulia"}`;
  });
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>${t("skip")}</a>
    <${Rail} part=${part} shown=${shown} place=${given.place} />
    <div class="right">
      <${Top} part=${part} given=${given} path=${path} shown=${shown} />
      <main id="main" tabindex="-1"><${View} key=${name} name=${name} load=${load} given=${given} /></main>
    </div>
    <nav class="bottom" aria-label=${t("nav.bottom")}>${ON_PHONE.map((name) => html`<${Link} key=${name} name=${name} part=${part} shown=${shown} />`)}
      <button type="button" class="plain" aria-haspopup="dialog" onClick=${() => setMore(true)}><${Icon} name="more" /><span>${t("nav.more")}</span></button></nav>
    ${more && html`<${More} part=${part} shown=${shown} close=${() => setMore(false)} />`}
    ${help && html`<${Keys} close=${() => setHelp(false)} />`}`;
}

const Link = ({ name, part, shown }) => {
  const count = countOf(name, shown);
  return html`
    <a href=${to(LINKS[name])} aria-current=${part === name ? "page" : undefined}><${Icon} name=${name} /><span>${t(`nav.${name}`)}</span>
      ${count > 0 && html`<span class="n ${name === "outbox" ? "badge" : ""}">${number(count)}</span>`}</a>`;
};

const countOf = (name, shown) =>
  shown ? { places: shown.places.length, runs: shown.runs_done + shown.runs_failed + shown.answering, agents: shown.agents.length, outbox: shown.to_decide.length, tasks: shown.tasks.length, memory: shown.store.facts }[name] || 0 : 0;

function Rail({ part, shown, place }) {
  const agent = agentOf("") || shown?.agent || session.peek().agent || "Tertulia";
  return html`
    <nav class="rail" aria-label=${t("nav.main")}>
      <a class="brand" href=${to("/")}><${Logo} /><b>Tertulia</b></a>
      ${linked().map((name) => html`<${Link} key=${name} name=${name} part=${place ? "" : part} shown=${shown} />`)}
      <h2>${t("nav.places")}</h2>
      ${shown?.places.slice(0, 9).map((row) => html`
        <a key=${row.key} class="place" href=${to(`/p/${row.key}`)} aria-current=${place === row.key ? "page" : undefined}>
          <i class="dot ${{ answering: "accent", waits: "warn", "to decide": "warn", failed: "bad" }[row.state] || "none"}" /><bdi class="cut">${placeName(row.place)}</bdi>
          <span class="n">${row.state === "answering" ? t("ago.now") : row.last?.sent_at ? ago(row.last.sent_at) : ""}</span></a>`)}
      <div class="whose">
        <${Avatar} author=${{ id: "agent", name: agent, persona: agent }} />
        <div class="grow"><b>${agent}</b><small>${location.host}</small></div>
        <${Choices} />
      </div>
    </nav>`;
}

function Top({ part, given, path, shown }) {
  const { query } = useSignal(address);
  const between = useSignal(ofView);
  const row = shown?.places.find((one) => one.key === given.place);
  const name = row ? placeName(row.place) : given.place;
  const crumbs = [[t(`nav.${part || "home"}`), LINKS[part] || "/"]];
  if (given.place) crumbs.push([name, `/p/${given.place}`]);
  if (given.room) crumbs.push([shown?.places.find((one) => one.key === `web.${given.room}`)?.place.title || t("room"), path]);
  if (between.length) crumbs.push(...between);
  if (given.run) crumbs.push([html`<code>${short(given.run)}</code>`, path]);
  if (given.message) crumbs.push([t("why"), path]);
  const end = given.place ? path.slice(`/p/${given.place}`.length) : null;
  return html`
    <header class="top">
      <a class="brand" href=${to("/")} aria-label="Tertulia"><${Logo} /></a>
      <ol class="crumbs" aria-label=${t("nav.where")}>${crumbs.map(([words, at], index) => html`<li key=${at} class="cut">${index === crumbs.length - 1 ? html`<b aria-current="page">${words}</b>` : html`<a href=${to(at)}>${words}</a>`}</li>`)}</ol>
      ${end !== null && html`
        <nav class="tabs" aria-label=${t("nav.of_place")}>${Object.entries(OF_PLACE).map(([key, of]) => html`<a key=${key} href=${to(`/p/${given.place}${of}`)} aria-current=${end === of ? "page" : undefined}>${t(`nav.${key}`)}</a>`)}</nav>`}
      <${SearchField} initial=${part === "search" ? query.q || "" : ""} />
    </header>`;
}

function SearchField({ initial }) {
  const timer = useRef(0);
  const [value, setValue] = useState(initial);
  useEffect(() => setValue(initial), [initial]);
  function typed(event) {
    const words = event.target.value;
    setValue(words);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => open(words), 250);
  }
  const open = (words) => words.trim() && go(to("/search", { q: words }), { replace: address.peek().path === "/search", focus: false });
  return html`
    <label class="search"><${Icon} name="search" /><span class="hidden">${t("search.jump_to")}</span>
      <input id="search" type="search" value=${value} placeholder=${t("search.jump_to")} onInput=${typed}
        onKeyDown=${(event) => (event.key === "Enter" ? (clearTimeout(timer.current), open(value)) : event.key === "Escape" && event.target.blur())} /><kbd>/</kbd></label>`;
}

/** On the phone: what the bar below has no room for. */
function More({ part, shown, close }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  const rest = linked().filter((name) => !ON_PHONE.includes(name));
  return html`
    <dialog class="more-menu" ref=${dialog} onClose=${close} aria-label=${t("nav.more")} onClick=${(event) => (event.target === dialog.current || event.target.closest("a")) && dialog.current.close()}>
      ${rest.map((name) => html`<${Link} key=${name} name=${name} part=${part} shown=${shown} />`)}
      <div class="split"><span class="muted">${agentOf("") || shown?.agent || ""}</span><span><${Choices} /></span></div>
    </dialog>`;
}

const KEYS = ["/", "g h", "g p", "g r", "g m", "g o", "j k", "Enter", "Esc", "[ ]", "1 … 7", "w", "c", "x", "d", "y", "s", "t", "?"];

function Keys({ close }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return html`
    <dialog ref=${dialog} onClose=${close} aria-label=${t("keys")}>
      <h2>${t("keys")}</h2>
      <dl class="keys">${KEYS.map((key) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${t(`key ${key}`)}</dd></div>`)}</dl>
      <p class="note">${t("keys.note")}</p>
      <button type="button" onClick=${() => dialog.current.close()}>${t("close")}</button>
    </dialog>`;
}

function Login() {
  const [given, setGiven] = useState("");
  const [error, setError] = useState("");
  async function enter(event) {
    event.preventDefault();
    try {
      session.value = await begin(given.trim().split("token=").pop());
    } catch (failure) {
      setError(failure.message);
    }
  }
  return html`
    <main class="login"><${Logo} /><h1>Tertulia</h1><p>${t("login.how")}</p>
      <form onSubmit=${enter}><label>${t("login.token")}<input type="password" autocomplete="off" value=${given} onInput=${(event) => setGiven(event.target.value)} /></label>
        <button class="solid" type="submit">${t("login.open")}</button></form>
      <p role="alert" class="bad">${error}</p>
    </main>`;
}

// Themes and languages are of this browser.

const THEMES = ["", "light", "dark"];

function setTheme(name) {
  document.documentElement.dataset.theme = THEMES.includes(name) ? name : "";
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "") + 1) % THEMES.length];
  remembered("theme", next);
  setTheme(next);
}

async function nextLanguage() {
  const next = language === "en" ? "uk" : "en";
  remembered("language", next);
  await loadWords(next);
  session.value = { ...session.peek() };
  address.value = { ...address.peek() };
  home.value = home.peek() && { ...home.peek() };
}

/** Exchange a token for a cookie, which scripts cannot read. */
const begin = (token) => ask("/session", { method: "POST", body: { token } });

async function start() {
  setTheme(remembered("theme"));
  const { room } = viewOf(address.peek().path).given;
  const given = location.hash.slice(1); // a token of the page, or the key of a room; both leave the address bar
  const token = new URLSearchParams(given).get("token");
  if (given) history.replaceState(room && !token ? { key: given } : null, "", location.pathname + location.search);
  const found = await (token ? begin(token) : ask(room ? `/session?room=${encodeURIComponent(room)}` : "/session")).catch(() => null);
  await loadWords(remembered("language") || (found?.role !== "guest" && found?.language) || navigator.language);
  session.value = found;
  document.body.replaceChildren();
  render(html`<${App} />`, document.body);
}

await start();
