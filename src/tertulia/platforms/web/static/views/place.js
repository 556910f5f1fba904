// A place: its messages as they come, and what became of each.
import {
  address, api, ago, ask, clock, day, duration, home, html, money, named, number, placeName, seconds, setQuery, share, short,
  t, textOf, title, to, useApi, useEffect, useRef, useSignal, useState, when,
} from "../core.js";
import { Act, Avatar, Chip, Empty, Icon, Loaded, MediaView, Money, Name, ToolChip } from "../parts.js";
import { ToDecide, taskWords } from "./home.js";

const MOST = 400; // messages in the page
const REOPENED = 3000; // milliseconds after which a stream that the server refused is opened again

/** Messages by their numbers: nothing twice, nothing missing between the pages. */
function joined(before, after) {
  if (!before.length || !after.length) return [...before, ...after];
  if (after[0].number > before[before.length - 1].number + 1) return after; // more came than one page holds
  const numbers = new Set(after.map((row) => row.number));
  return [...before.filter((row) => !numbers.has(row.number)), ...after].sort((a, b) => a.number - b.number);
}

function useMessages(key, start) {
  const [state, setState] = useState({ key, rows: [], page: null, error: null, atEnd: start === undefined });
  const [live, setLive] = useState(null);
  const [opened, setOpened] = useState(0); // how often the stream was opened again
  const current = useRef(state);
  current.current = state;
  const change = (changes) => {
    if (current.current.key === key) setState((current.current = { ...current.current, ...changes }));
  };

  async function newest() {
    try {
      const page = await ask(`/places/${key}`);
      change({ rows: joined(current.current.rows, page.messages).slice(-MOST), page, error: null, atEnd: true });
      if (page.row.state !== "answering") setLive(null);
    } catch (error) {
      change({ error });
    }
  }

  async function earlier() {
    const { rows, busy } = current.current;
    if (busy || !rows.length || !rows[0].number) return;
    change({ busy: true });
    try {
      const page = await ask(`/places/${key}?before=${rows[0].number}`);
      const all = joined(page.messages, rows);
      change({ rows: all.slice(0, MOST), noMore: page.before === null, busy: false, atEnd: current.current.atEnd && all.length <= MOST });
    } catch (error) {
      change({ error, busy: false });
    }
  }

  useEffect(() => {
    setLive(null);
    setState((current.current = { key, rows: [], page: null, error: null, atEnd: start === undefined }));
    ask(`/places/${key}${start === undefined ? "" : `?before=${start}`}`)
      .then((page) => change({ rows: page.messages, page, noMore: page.before === null }))
      .catch((error) => change({ error }));
  }, [key, start]);

  // Events only say that something changed: what is shown is read, by number, so nothing is lost or doubled.
  useEffect(() => {
    if (!state.page) return undefined;
    let timer = 0;
    const source = new EventSource(api(`/places/${key}/events?after=${state.page.event}`));
    source.onerror = () => source.readyState === EventSource.CLOSED && (timer = setTimeout(() => setOpened((n) => n + 1), REOPENED));
    source.onopen = () => opened && current.current.atEnd && newest();
    source.addEventListener("change", () => {
      clearTimeout(timer);
      timer = setTimeout(() => current.current.atEnd && newest(), 60);
    });
    source.addEventListener("live", (event) => setLive(JSON.parse(event.data)));
    source.addEventListener("delta", (event) => {
      const { run_id: id, text } = JSON.parse(event.data);
      setLive((before) => (before?.run_id === id ? { ...before, text: before.text + text } : { run_id: id, text }));
    });
    return () => (clearTimeout(timer), source.close());
  }, [key, Boolean(state.page), opened]);

  return { ...state, live, earlier, newest };
}

export function PlacePage({ place: key }) {
  const { query } = useSignal(address);
  const start = query.before === undefined ? undefined : Number(query.before);
  const shown = useMessages(key, start);
  const log = useRef(null);
  const follows = useRef(true);
  const held = useRef(null);
  const { rows, page } = shown;

  // The newest stays in view; what is read stays where it is when earlier messages come above it.
  useEffect(() => {
    const box = log.current;
    if (!box || !rows.length) return;
    if (held.current) {
      box.scrollTop += box.scrollHeight - held.current;
      held.current = null;
    } else if (query.at) {
      const wanted = document.getElementById(`m-${query.at}`);
      if (wanted && follows.current) wanted.scrollIntoView({ block: "center" });
    } else if (follows.current) {
      box.scrollTop = box.scrollHeight;
    }
  }, [rows, shown.live]);

  function scrolled() {
    const box = log.current;
    follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    if (box.scrollTop < 300 && !shown.noMore && !shown.busy) more();
  }
  function more() {
    held.current = log.current.scrollHeight;
    shown.earlier();
  }

  if (!page) return html`<${Loaded} of=${{ error: shown.error }}>${() => null}<//>`;
  const { row } = page;
  const isLive = row.state === "answering";
  return html`
    <div class="chat">
      <div class="middle">
        ${shown.error && html`<p class="notice bad" role="alert">${shown.error.message}</p>`}
        <div class="log" role="log" aria-live="polite" aria-relevant="additions" aria-label=${t("place.log", { place: placeName(row.place) })}
          tabindex="0" ref=${log} onScroll=${scrolled}>
          <div class="inner">
            ${shown.noMore ? html`<p class="rule">${t("place.beginning")}</p>` : html`
              <p class="rule"><button type="button" class="plain" onClick=${more}>${t("place.earlier")}</button></p>`}
            ${rows.map((one, at) => html`<${Message} key=${one.number} one=${one} before=${rows[at - 1]} place=${key} chosen=${query.at === one.message.id} />`)}
            ${shown.atEnd && (isLive || shown.live) && html`<${Writing} row=${row} live=${shown.live} />`}
            ${!rows.length && html`<${Empty}>${t("place.empty")}<//>`}
          </div>
        </div>
        <footer class="foot">
          <span>${t("place.nobody_sees")}</span>
          ${!shown.atEnd && html`<button type="button" onClick=${() => (follows.current = true, setQuery({ before: "", at: "" }))}>${t("place.newest")}</button>`}
          ${isLive && html`<${Act} label=${t("place.stop")} path=${`/places/${key}/stop`} after=${shown.newest} question=${t("place.stop_question")} />`}
        </footer>
      </div>
      <${Side} row=${row} />
    </div>`;
}

function Writing({ row, live }) {
  const agent = useSignal(home)?.agent || t("home.bot");
  return html`
    <article class="message">
      <${Avatar} author=${{ id: "agent", name: agent, persona: agent }} />
      <div class="body">
        <p class="meta"><b>${agent}</b><${Chip} kind="accent" dot>${t("state.answering")}${row.since ? `, ${ago(row.since)}` : ""}<//>
          ${live && html`<a href=${to(`/run/${live.run_id}`)} class="mono">${t("run.named", { id: short(live.run_id) })}</a>`}</p>
        ${live?.text && html`<p class="words" dir="auto" aria-live="off">${live.text}<i class="cursor" /></p>`}
      </div>
    </article>`;
}

/** What became of a message, as a chip. */
function DecisionChips({ decisions }) {
  return decisions.map((one, at) => html`<${Chip} key=${at} kind=${kindOf(one)} title=${one.agent || ""}>${decisionWords(one)}<//>`);
}

export const kindOf = ({ reason, address: spoken }) =>
  reason === "answered" || reason === "joined" ? "accent"
  : ["waiting", "rate limit", "spend cap", "agents in a row"].includes(reason) ? "warn"
  : spoken ? "warn" : "";

export function decisionWords({ reason, address: spoken }) {
  if ((reason === "answered" || reason === "joined") && spoken) return named("address", spoken);
  return named("reason", reason);
}

function Message({ one, before, place, chosen }) {
  const { message, wrote, delivery, tools } = one;
  const { author } = message;
  const own = Boolean(wrote || delivery);
  const newDay = !before || !message.sent_at || !before.message.sent_at || day(before.message.sent_at) !== day(message.sent_at);
  const media = (message.parts || []).filter((part) => part.kind === "media");
  const text = textOf((message.parts || []).filter((part) => part.kind !== "media"));
  return html`
    ${newDay && message.sent_at && html`<p class="rule">${day(message.sent_at)}</p>`}
    <article class="message ${chosen ? "chosen" : ""}" id=${`m-${message.id}`} lang=${author.language || undefined} data-row>
      <${Avatar} author=${own ? { ...author, persona: author.persona || author.name } : author} />
      <div class="body">
        <p class="meta"><${Name} author=${author} />
          ${own && html`<${Chip}>${t("agent")}<//>`}
          ${message.sent_at && html`<time datetime=${message.sent_at}>${clock(message.sent_at)}</time>`}
          ${message.edited_at && html`<span class="muted">${t("message.edited")}</span>`}
          ${message.forwarded_from && html`<span class="muted">${t("message.forwarded", { name: message.forwarded_from.name })}</span>`}
          ${!own && html`<${DecisionChips} decisions=${one.decisions} />`}
          ${(message.doubtful || delivery?.status === "doubtful") && html`<${Chip} kind="warn">${t("send.doubtful")}<//>`}
          ${wrote && html`<a href=${to(`/run/${wrote}`)}>${t("run.open")}</a>
            <a href=${to(`/p/${place}/m/${encodeURIComponent(message.id)}/why`)} class="why">${t("why")}</a>`}
        </p>
        ${message.reply_to && html`<${Quote} quote=${message.reply_to} place=${place} />`}
        ${tools.map((run) => html`<${ToolChip} key=${`${run.step}.${run.number}`} run=${run} />`)}
        ${media.map((part) => html`<${MediaView} key=${part.unique_id} media=${part} />`)}
        ${message.deleted ? html`<p class="words muted">${t("message.deleted")}</p>` : text && html`<p class="words" dir="auto">${text}</p>`}
      </div>
    </article>`;
}

const Quote = ({ quote, place }) => html`
  <p class="quote cut" dir="auto">${quote.author && html`<span class="muted">${quote.author.name}: </span>`}${quote.excerpt || textOf(quote.parts) || t("message.media")}</p>`;

function Side({ row }) {
  const shown = useSignal(home);
  const doubtful = (shown?.to_decide || []).filter((one) => one.place_key === row.key);
  const tasks = useApi("/tasks").data?.sort((a, b) => (a.due_at < b.due_at ? -1 : 1)).filter((task) => samePlace(task.place, row.place) && (task.status || "pending") === "pending") || [];
  const { today } = row;
  return html`
    <aside class="aside" aria-label=${t("place.about")}>
      ${doubtful.length > 0 && html`<h2>${t("place.not_shown")}</h2>${doubtful.map((one) => html`<${ToDecide} key=${one.item.id} one=${one} />`)}`}
      <h2>${t("place.planned")}</h2>
      ${tasks.length ? tasks.slice(0, 6).map((task) => html`<p key=${task.id} class="plan-line"><span class="muted">${when(task.due_at)}</span><br /><span dir="auto">${taskWords(task)}</span></p>`)
        : html`<p class="muted">${t("tasks.none")}</p>`}
      <h2>${t("place.today")}</h2>
      <dl class="figures">
        <div><dt>${t("place.messages")}</dt><dd>${number(row.messages)}</dd></div>
        <div><dt>${t("place.runs")}</dt><dd>${number(row.runs)}</dd></div>
        <div><dt>${t("place.requests")}</dt><dd>${number(today.calls)}</dd></div>
        <div><dt>${t("cached")}</dt><dd>${share(today.cached, today.input)}</dd></div>
        <div><dt>${t("place.spent")}</dt><dd><${Money} spent=${today} /></dd></div>
      </dl>
      ${row.why && html`<h2>${t("place.failed")}</h2><p class="mono bad">${row.why}</p>`}
    </aside>`;
}

const samePlace = (a, b) => a.platform === b.platform && a.id === b.id && (a.thread || null) === (b.thread || null);
