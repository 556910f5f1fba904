// Home: whether the bot is well, what it has spent today, what waits for a decision.
import {
  address, agentOf, agents, clock, duration, home, html, longDay, money, named, number, placeKind, placeName, seconds, session, share, short, t, to,
  title, useApi, useSignal, bytes, when,
} from "../core.js";
import { RoomsCard } from "./rooms.js";
import { Act, Card, Chip, Empty, Heading, LayerBar, Money, Name, StateChip, Tabs, Whose, totalOf } from "../parts.js";

export function Home() {
  const shown = useSignal(home);
  if (!shown) return html`<div class="page" aria-busy="true"><div class="skeleton" /></div>`;
  const now = new Date(shown.now);
  return html`
    <div class="page">
      <${Heading} title=${sentence(shown)} note=${`${longDay(now)}, ${clock(now)}. ${failures(shown)}`}
        side=${html`<${Chip} kind=${shown.running ? "ok" : "muted"} dot>${t(shown.running ? "home.live" : "home.rest")}<//>`} />
      <${Numbers} shown=${shown} />
      <div class="columns">
        <div>
          ${shown.to_decide.length > 0 && html`
            <${Card} title=${t("home.decide")} count=${shown.to_decide.length} kind="attention">
              ${shown.to_decide.map((one) => html`<${ToDecide} key=${one.item.id} one=${one} />`)}
            <//>`}
          <${Places} rows=${shown.places} />
          <${RoomsCard} />
          <${LastRuns} rows=${shown.runs} />
        </div>
        <aside aria-label=${t("home.health")}>
          <${Models} shown=${shown} />
          <${Platforms} shown=${shown} />
          <${StoreCard} store=${shown.store} />
          <${Planned} tasks=${shown.tasks} />
        </aside>
      </div>
    </div>`;
}

function sentence(shown) {
  const agent = agentOf("") || shown.agent || session.peek().agent || t("home.bot");
  // Where one model is down another one answers, and its own line says the rest.
  const models = shown.models.every((one) => one.down_since) ? shown.models : [];
  const down = [...models, ...shown.platforms.filter((one) => one.down_since)].map((one) => one.model || one.name);
  const agents = shown.agents.length;
  const first = agents && shown.running && !down.length ? t("home.agents_answer", { n: agents }) : shown.running && down.length ? t("home.trouble", { agent, names: down.join(", ") })
    : t(shown.running ? "home.answers" : "home.stopped", { agent });
  return shown.to_decide.length ? `${first} ${t("home.waits_for_you", { n: shown.to_decide.length })}` : first;
}

const failures = (shown) => (shown.runs_failed ? t("home.failed", { n: shown.runs_failed }) : t("home.none_failed"));

function Numbers({ shown }) {
  const { today, cap } = shown;
  const capped = cap?.money !== undefined && cap?.money !== null ? t("home.of_cap", { cap: money(cap.money, 2) }) : "";
  const highest = Math.max(...shown.hours, 1e-9);
  return html`
    <div class="stats">
      <div class="stat"><h2>${t("home.spent")}</h2><b><${Money} spent=${today} /></b>
        <p>${[capped, t("home.without_cache", { money: money(today.without_cache) })].filter(Boolean).join("; ")}</p>
        ${shown.hours.some(Boolean) && html`
          <div class="spark" role="img" aria-label=${t("home.hours")}>
            ${shown.hours.map((one, hour) => html`
              <i key=${hour} style=${{ height: `${Math.max(4, (100 * one) / highest)}%` }} class=${one ? "" : "none"}
                title=${`${String(hour).padStart(2, "0")}:00 UTC, ${money(one)}`} />`)}
          </div>`}
      </div>
      <div class="stat"><h2>${t("home.requests")}</h2><b>${number(today.calls)}</b>
        <p>${t("home.tokens", { tokens: today.input, share: share(today.cached, today.input) })}</p></div>
      <div class="stat"><h2>${t("home.runs_done")}</h2><b>${number(shown.runs_done)}</b>
        <p>${t("home.replies", { n: shown.replies_sent })}${shown.median_seconds !== null ? `; ${t("home.median", { time: duration(shown.median_seconds) })}` : ""}</p></div>
      <div class="stat"><h2>${t("home.queue")}</h2><b>${number(shown.answering + shown.waiting)}</b>
        <p>${t("home.queued", { answering: shown.answering, waiting: shown.waiting })}${shown.next_task ? `; ${t("home.next_task", { when: when(shown.next_task.due_at) })}` : ""}</p></div>
    </div>`;
}

/** What can be done about a reply of which nobody knows whether people have it. */
export const Settle = ({ item, after }) => html`
  <${Act} label=${t("outbox.send")} order=${{ kind: "send reply", subject: item.id }} question=${t("outbox.send_question")} after=${after} />
  <${Act} label=${t("outbox.drop")} kind="bad" order=${{ kind: "drop reply", subject: item.id }} question=${t("outbox.drop_question")} after=${after} />`;

export function ToDecide({ one, after }) {
  const { item } = one;
  return html`
    <article class="decide">
      <div class="grow">
        <p dir="auto"><a href=${to(`/p/${one.place_key}`)}><b>${placeName(item.reply.place)}</b></a>
          <span class="muted"> ${when(item.made_at)} </span> ${item.reply.text}</p>
        <p class="note">${t("outbox.doubtful")} ${item.why}</p>
      </div>
      <div class="buttons">
        <${Settle} item=${item} after=${after} />
        ${item.run && html`<a href=${to(`/run/${item.run}`)}>${t("run.named", { id: short(item.run) })}</a>`}
      </div>
    </article>`;
}

const FILTERS = { all: () => true, answering: (row) => row.state === "answering" || row.waiting > 0, failed: (row) => row.state === "failed" };

export function Places({ rows }) {
  const { query } = useSignal(address);
  const only = query.only in FILTERS ? query.only : "all";
  const found = rows.filter(FILTERS[only]);
  return html`
    <${Card} title=${t("nav.places")} count=${rows.length} side=${html`
      <${Tabs} name="only" initial="all" current=${only} label=${t("nav.places")}
        of=${Object.keys(FILTERS).map((name) => [name, t(`places.${name}`)])} />`}>
      ${found.length ? html`
        <table class="rows places">
          <thead><tr><th>${t("place")}</th><th>${t("places.last")}</th><th class="when">${t("places.when")}</th>
            <th>${t("places.state")}</th><th class="n">${t("places.runs")}</th><th class="n">${t("places.cached")}</th>
            <th class="n">${t("places.today")}</th></tr></thead>
          <tbody>${found.map((row) => html`<${PlaceLine} key=${row.key} row=${row} />`)}</tbody>
        </table>` : html`<${Empty}>${t(rows.length ? "places.none_such" : "home.nobody")}<//>`}
    <//>`;
}

const PlaceLine = ({ row }) => html`
  <tr class="row">
    <td class="main"><a class="whole" href=${to(`/p/${row.key}`)}><bdi>${placeName(row.place)}</bdi></a><small>${placeKind(row.place)}</small></td>
    <td class="text cut" dir="auto">${row.last && html`<span class="muted">${row.last.author.name}: </span>${row.last.text}`}</td>
    <td class="n muted when">${row.last?.sent_at ? when(row.last.sent_at) : ""}</td>
    <td class="state"><${StateChip} row=${row} /></td>
    <td class="n wide">${number(row.runs)}</td>
    <td class="n wide muted">${row.today.input ? share(row.today.cached, row.today.input) : ""}</td>
    <td class="n wide">${row.today.calls ? html`<${Money} spent=${row.today} />` : ""}</td>
  </tr>`;

const LastRuns = ({ rows }) => html`
  <${Card} title=${t("home.last_runs")} side=${html`<a href=${to("/runs")}>${t("home.all_runs")}</a>`}>
    ${rows.length ? html`<${RunLines} rows=${rows} />` : html`<${Empty}>${t("runs.none")}<//>`}
  <//>`;

export function RunLines({ rows }) {
  const widest = Math.max(...rows.map((row) => totalOf(row.size)), 1);
  const several = useSignal(agents).length > 0;
  return html`
    <table class="rows runs ${several ? "several" : ""}">
      <thead><tr><th class="when">${t("places.when")}</th><th>${t("place")}</th>${several && html`<th>${t("agents.one")}</th>`}<th>${t("message")}</th><th>${t("request")}</th>
        <th class="n">${t("took")}</th><th class="n">${t("cost")}</th></tr></thead>
      <tbody>${rows.map((row) => html`<${RunLine} key=${row.run.id} row=${row} widest=${widest} several=${several} />`)}</tbody>
    </table>`;
}

function RunLine({ row, widest, several }) {
  const { run, message, spent, size } = row;
  const status = run.status || "open";
  return html`
    <tr class="row">
      <td class="n muted when">${when(run.began_at)}</td>
      <td class="where cut"><bdi>${placeName(run.place)}</bdi></td>
      ${several && html`<td class="cut agent"><${Whose} agent=${run.agent} /></td>`}
      <td class="text cut main" dir="auto"><a class="whole" href=${to(`/run/${run.id}`)}>
        ${message ? html`<span class="muted">${message.author.name}: </span>${message.text || t("message.media")}` : t("message.gone")}</a></td>
      <td class="bars">${status === "failed" ? html`<span class="bad cut" title=${run.why}>${run.why || t("failed")}</span>`
        : status === "open" ? html`<span class="accent">${t("run.under_way")}</span>`
        : html`<${LayerBar} layers=${row.layers} size=${size} cached=${cachedOf(row)} whole=${widest} />`}</td>
      <td class="n muted took">${run.ended_at ? duration(seconds(run.began_at, run.ended_at)) : ""}</td>
      <td class="n wide">${spent.calls ? html`<${Money} spent=${spent} />` : ""}</td>
    </tr>`;
}

/** What the service had in its cache of the last request, in our estimated tokens: the share of the whole run. */
const cachedOf = ({ spent, size }) => (spent.input ? (totalOf(size) * spent.cached) / spent.input : 0);

const Models = ({ shown }) => html`
  <${Card} title=${t("home.models")}>
    ${shown.models.length ? shown.models.map((one) => html`
      <article class="line" key=${one.model}>
        <p class="split"><span><i class="dot ${one.down_since ? "bad" : one.failed ? "warn" : "ok"}" /><b>${one.model}</b></span><span class="n"><${Money} spent=${one.spent} /></span></p>
        <p class="note">${t("home.calls", { n: one.spent.calls })}${one.median_seconds !== null ? `, ${t("home.median", { time: duration(one.median_seconds) })}` : ""}, ${t("home.share_cached", { share: share(one.spent.cached, one.spent.input) })}</p>
        ${one.down_since ? html`<${Down} one=${one} />`
          : one.failed > 0 && html`<p class="note warn two-lines" title=${one.why}>${health(one)}</p>`}
      </article>`) : html`<${Empty}>${t("home.no_model")}<//>`}
  <//>`;

const Down = ({ one }) => html`
  <p class="note bad two-lines" title=${one.why}>${t("home.down_since", { when: when(one.down_since) })}${
    one.retry_at ? `, ${t("home.retry_at", { when: clock(one.retry_at) })}` : ""}: ${one.why}</p>`;

function health(one) {
  const failed = t("home.model_failed", { why: one.why || t("failed"), when: one.failed_at ? when(one.failed_at) : "?" });
  const since = one.answered_at && one.failed_at && new Date(one.answered_at) > new Date(one.failed_at);
  return `${since ? t("home.answers_again") : t("home.not_since")}; ${failed}`;
}

const Platforms = ({ shown }) => html`
  <${Card} title=${t("home.platforms")}>
    ${shown.platforms.length ? shown.platforms.map((one) => html`
      <article class="line" key=${one.name}>
        <p class="split"><span><i class="dot ${one.down_since ? "bad" : one.unread ? "warn" : "ok"}" /><b>${title(one.name)}</b></span><span class="n muted">${one.last_at ? when(one.last_at) : ""}</span></p>
        <p class="note">${one.updates > 0 ? `${t("home.updates", { n: one.updates })}, ${one.unread ? t("home.unread", { n: one.unread }) : t("home.all_read")}; ` : ""}${t("home.places", { n: one.places })}</p>
        ${one.down_since && html`<${Down} one=${one} />`}
      </article>`) : html`<${Empty}>${t("home.nobody")}<//>`}
  <//>`;

const StoreCard = ({ store }) => html`
  <${Card} title=${t("home.store")}>
    <article class="line">
      <p class="split"><span class="cut"><i class="dot ok" /><b title=${store.name}>${store.name.includes("://") ? store.name : store.name.split(/[/\\]/).pop() || t("home.store")}</b></span><span class="n">${store.size === null ? "" : bytes(store.size)}</span></p>
      <p class="note">${t("home.stored", { messages: store.messages, prompts: store.prompts })}</p>
    </article>
    <article class="line">
      <p class="split"><span><i class="dot ${store.indexed < store.messages ? "warn" : "ok"}" /><b>${t("home.index")}</b></span><span class="n">${t("home.indexed", { indexed: store.indexed, messages: store.messages })}</span></p>
      <p class="note">${t("home.memory", { facts: store.facts, episodes: store.episodes })}</p>
    </article>
  <//>`;

const Planned = ({ tasks }) => html`
  <${Card} title=${t("home.planned")} count=${tasks.length}>
    ${tasks.length ? tasks.map((task) => html`
      <article class="line" key=${task.id}>
        <p class="cut"><i class="dot none" /><b dir="auto">${taskWords(task)}</b></p>
        <p class="note">${when(task.due_at)}, <a href=${to("/tasks")}>${placeName(task.place)}</a></p>
      </article>`) : html`<${Empty}>${t("tasks.none")}<//>`}
  <//>`;

export const taskWords = (task) => {
  const args = task.args || {};
  const text = args.text || args.message || (Array.isArray(args.facts) ? args.facts.join("; ") : "");
  return text || named("task", task.kind);
};

export function PlacesPage() {
  const shown = useApi("/places", { every: 10 });
  return html`<div class="page"><${Heading} title=${t("nav.places")} note=${t("places.note")} />
    ${shown.data ? html`<${Places} rows=${shown.data} /><${RoomsCard} />` : shown.error ? html`<p class="notice bad" role="alert">${shown.error.message}</p>` : html`<div class="skeleton" />`}</div>`;
}

