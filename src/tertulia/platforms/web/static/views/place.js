// A place: its messages as they come, and what became of each.
import {
  address, agentOf, agents, ago, ask, duration, home, html, money, named, number, placeName, seconds, setQuery, share, short, t, textOf, to, useApi,
  useEffect, useRef, useSignal, useState, when,
} from "../core.js";
import { Announcer, Log, MOST, Said, useLive, useStream } from "../conversation.js";
import { Act, Avatar, Chip, Empty, Icon, Loaded, Money, ToolChip, stayWords } from "../parts.js";
import { LiveText, readTexts } from "../text.js";
import { ToDecide, taskWords } from "./home.js";

const TOGETHER = 150; // milliseconds in which changes come together: a reply, its delivery, the end of its run

/** Messages by their numbers: nothing twice, nothing missing between the pages. */
function joined(before, after) {
  if (!before.length || !after.length) return [...before, ...after];
  if (after[0].number > before[before.length - 1].number + 1) return after; // more came than one page holds
  const numbers = new Set(after.map((row) => row.number));
  return [...before.filter((row) => !numbers.has(row.number)), ...after].sort((a, b) => a.number - b.number);
}

const isOpen = ({ run }) => (run.status || "open") === "open";

const textsOf = ({ messages }) => messages.map((one) => textOf((one.message.parts || []).filter((part) => part.kind === "text")));

/** A page of messages, with its texts as they are drawn. */
async function readPage(key, before) {
  const page = await ask(`/places/${key}${before === undefined ? "" : `?before=${before}`}`);
  await readTexts(textsOf(page)).catch(() => {});
  return page;
}

function useMessages(key, start) {
  const [state, setState] = useState({ key, rows: [], page: null, error: null, atEnd: start === undefined });
  const [open, setOpen] = useState([]); // runs under way
  const live = useLive();
  const timer = useRef(0);
  const current = useRef(state);
  current.current = state;
  const change = (changes) => {
    if (current.current.key === key) setState((current.current = { ...current.current, ...changes }));
  };

  async function newest() {
    try {
      const page = await readPage(key);
      change({ rows: joined(current.current.rows, page.messages).slice(-MOST), page, error: null, atEnd: true });
      if (page.row.state !== "answering") live.only(() => false);
    } catch (error) {
      change({ error });
    }
  }

  async function earlier() {
    const { rows, busy } = current.current;
    if (busy || !rows.length || !rows[0].number) return;
    change({ busy: true });
    try {
      const page = await readPage(key, rows[0].number);
      const all = joined(page.messages, rows);
      change({ rows: all.slice(0, MOST), noMore: page.before === null, busy: false, atEnd: current.current.atEnd && all.length <= MOST });
    } catch (error) {
      change({ error, busy: false });
    }
  }

  useEffect(() => {
    live.only(() => false);
    setOpen([]);
    setState((current.current = { key, rows: [], page: null, error: null, atEnd: start === undefined }));
    readPage(key, start)
      .then((page) => change({ rows: page.messages, page, noMore: page.before === null }))
      .catch((error) => change({ error }));
    return () => clearTimeout(timer.current);
  }, [key, start]);

  /** Take what people said as it is told; what the agent does is read, with what the store has of it. */
  function took({ anew, messages = [], runs = [], deliveries = [] }) {
    const { rows, atEnd } = current.current;
    const last = rows[rows.length - 1]?.number ?? -1;
    const isTold = !anew && !deliveries.length && runs.every(isOpen) && messages.every((one) => one.decisions && one.number <= last + 1);
    if (isTold && atEnd) change({ rows: joined(rows, messages).slice(-MOST) });
    return isTold;
  }

  useStream(state.page ? `/places/${key}/events` : null, state.page?.event, {
    ...live,
    change: (told) => {
      const { anew, runs = [] } = told;
      setOpen((before) => [...(anew ? [] : before).filter((one) => !runs.some(({ run }) => run.id === one.run.id)), ...runs.filter(isOpen)]);
      if (took(told)) return;
      clearTimeout(timer.current);
      timer.current = setTimeout(() => current.current.atEnd && newest(), TOGETHER);
    },
  });

  return { ...state, open, texts: live.texts, earlier, newest };
}

export function PlacePage({ place: key }) {
  const { query } = useSignal(address);
  const start = query.before === undefined ? undefined : Number(query.before);
  const shown = useMessages(key, start);
  useSignal(agents);
  const shownHome = useSignal(home);
  const agent = agentOf("") || shownHome?.agent || t("home.bot");
  const { rows, page, open, texts } = shown;
  const answer = rows.findLast((one) => one.wrote)?.number;
  const runs = useApi(`/runs?place=${encodeURIComponent(key)}`);
  useEffect(() => void (runs.data && runs.reload()), [answer]);
  const runOf = new Map((runs.data || []).map((one) => [one.run.id, one]));
  if (!page) return html`<${Loaded} of=${{ error: shown.error }}>${() => null}<//>`;
  const { row } = page;
  const isLive = open.length > 0 || row.state === "answering";
  return html`
    <div class="chat">
      <div class="middle">
        <h1 class="hidden">${placeName(row.place)}</h1>
        ${shown.error && html`<p class="notice bad" role="alert">${shown.error.message}</p>`}
        <${Log} key=${key} rows=${rows} label=${t("place.log", { place: placeName(row.place) })} earlier=${shown.earlier} noMore=${shown.noMore} busy=${shown.busy} at=${query.at} moving=${isLive}>
          ${rows.map((one, at) => html`<${Message} key=${one.number} one=${one} before=${rows[at - 1]} place=${key} run=${runOf.get(one.wrote)} chosen=${query.at === one.message.id} />`)}
          ${shown.atEnd && isLive && html`<${Writing} key="writing" row=${row} agent=${agent} open=${open} texts=${texts} />`}
          ${!rows.length && html`<${Empty}>${t("place.empty", { agent })}<//>`}
        <//>
        <${Announcer} rows=${rows} agent=${agentOf(open[0]?.run.agent) || agent} runOf=${(one) => one.wrote} />
        <footer class="foot">
          <span>${t("place.nobody_sees")}</span>
          ${row.place.platform === "web" && html`<a class="button" href=${to(`/r/${encodeURIComponent(row.place.id)}`)}><${Icon} name="room" />${t("room.open")}</a>`}
          ${!shown.atEnd && html`<button type="button" onClick=${() => setQuery({ before: "", at: "" })}>${t("place.newest")}</button>`}
          ${isLive && html`<${Act} label=${t("place.stop")} order=${{ kind: "stop place", place: key }} after=${shown.newest} question=${t("place.stop_question")} />`}
        </footer>
      </div>
      <${Side} row=${row} agents=${page.agents} />
    </div>`;
}

function Writing({ row, agent, open, texts }) {
  const runs = open.length ? open : Object.keys(texts).map((id) => ({ run: { id }, tools: [] }));
  agent = agentOf(runs[0]?.run.agent) || agent;
  return html`
    <article class="message flat" aria-label=${t("state.answering")}>
      <${Avatar} author=${{ id: "agent", name: agent, persona: agent }} />
      <div class="body">
        <p class="meta"><b class="name">${agent}</b><${Chip} kind="accent" dot>${t("state.answering")}${row.since ? `, ${ago(row.since)}` : ""}<//>
          ${runs.map(({ run }) => html`<a key=${run.id} href=${to(`/run/${run.id}`)} class="mono">${t("run.named", { id: short(run.id) })}</a>`)}</p>
        ${runs.map(({ run, tools = [] }) => html`<div key=${run.id}>
          ${tools.map((one) => html`<${ToolChip} key=${`${one.step}.${one.number}`} run=${one} />`)}
          ${texts[run.id] && html`<${LiveText} run=${run.id} text=${texts[run.id]}><i class="cursor" /><//>`}</div>`)}
      </div>
    </article>`;
}

/** What became of a message, as a chip. */
function DecisionChips({ decisions }) {
  return decisions.map((one, at) => html`<${Chip} key=${at} kind=${kindOf(one)} title=${one.agent || ""}>${one.agent && agents.peek().length > 1 ? `${one.agent}: ` : ""}${decisionWords(one)}<//>`);
}

export const kindOf = ({ reason, address: spoken }) =>
  reason === "answered" || reason === "joined" ? "accent"
  : ["waiting", "rate limit", "spend cap", "agents in a row"].includes(reason) ? "warn"
  : spoken ? "warn" : "";

export function decisionWords({ reason, address: spoken }) {
  if ((reason === "answered" || reason === "joined") && spoken) return named("address", spoken);
  return named("reason", reason);
}

const NOTHING = () => undefined;

/** How long a run took and what it cost. */
const runWords = ({ run, spent }) => [run.ended_at && duration(seconds(run.began_at, run.ended_at)), spent.calls && money(spent.money)].filter(Boolean).join(", ");

function Message({ one, before, place, run, chosen }) {
  const { message, wrote, delivery, tools } = one;
  const own = Boolean(wrote || delivery);
  return html`<${Said} one=${one} before=${before} own=${own} files=${NOTHING} tools=${tools} chosen=${chosen} meta=${html`
    <${DecisionChips} decisions=${own ? one.decisions.filter((each) => each.agent) : one.decisions} />
    ${(message.doubtful || delivery?.status === "doubtful") && html`<${Chip} kind="warn">${t("send.doubtful")}<//>`}
    ${wrote && html`<a href=${to(`/run/${wrote}`)} title=${t("run.named", { id: short(wrote) })}>${run ? html`<span class="hidden">${t("run.open")}: </span>${runWords(run)}` : t("run.open")}</a>
      <a href=${to(`/p/${place}/m/${encodeURIComponent(message.id)}/why`)} class="why">${t("why")}</a>`}`} />`;
}

function Side({ row, agents }) {
  const shown = useSignal(home);
  const doubtful = (shown?.to_decide || []).filter((one) => one.place_key === row.key);
  const tasks = useApi("/tasks").data?.sort((a, b) => (a.due_at < b.due_at ? -1 : 1)).filter((task) => samePlace(task.place, row.place) && (task.status || "pending") === "pending") || [];
  const { today } = row;
  return html`
    <aside class="aside" aria-label=${t("place.about")}>
      ${doubtful.length > 0 && html`<h2>${t("place.not_shown")}</h2>${doubtful.map((one) => html`<${ToDecide} key=${one.item.id} one=${one} />`)}`}
      ${agents.length > 0 && html`<h2>${t("agents.in_place")}</h2>
        <ul class="people-list">${agents.map((one) => html`<li key=${one.name} class=${one.here ? "" : "muted"}><${Avatar} author=${{ name: one.name, persona: one.name }} /><span class="grow"><bdi>${one.name}</bdi><small>${stayWords(one)}</small></span></li>`)}</ul>`}
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
