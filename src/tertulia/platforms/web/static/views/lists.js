// Tables that can be searched: outbox, tasks, media, usage.
import { address, agentOf, agents, api, bytes, day, duration, html, money, named, number, placeName, seconds, share, short, t, to, useApi, useSignal, when } from "../core.js";
import { Act, Card, Chip, Empty, Heading, Loaded, Tabs, Whose, messageLink, useFilter } from "../parts.js";
import { Settle, taskWords } from "./home.js";

export function OutboxPage() {
  const shown = useApi("/outbox", { every: 10 });
  const orders = useApi("/orders", { every: 5 });
  const reload = () => (shown.reload(), orders.reload());
  return html`<${Loaded} of=${shown}>${(rows) => html`<${Outbox} rows=${rows} orders=${orders.data || []} reload=${reload} />`}<//>`;
}

const SEND_KIND = { sent: "ok", doubtful: "warn", waiting: "accent", sending: "accent", dropped: "" };

function Outbox({ rows, orders, reload }) {
  const [found, field] = useFilter(rows, ({ item }) => `${item.reply.text} ${placeName(item.reply.place)} ${item.status} ${item.why}`);
  const open = rows.filter(({ item }) => item.status === "doubtful").length;
  return html`
    <div class="page">
      <${Heading} title=${t("nav.outbox")} note=${open ? t("outbox.open", { n: open }) : t("outbox.empty")} />
      <${Card} title=${t("outbox.replies")} count=${rows.length} side=${field}>
        ${found.length ? found.map(({ item, attempts }) => html`
          <article class="decide" key=${item.id}>
            <div class="grow">
              <p dir="auto"><b>${placeName(item.reply.place)}</b> <span class="muted"><${Whose} agent=${item.agent} /> ${when(item.made_at)}</span> <${Chip} kind=${SEND_KIND[item.status]}>${t(`send.${item.status}`)}<//></p>
              <p class="words ${item.reply.text ? "" : "muted"}" dir="auto">${item.reply.text || (item.reply.media?.length ? t("message.media") : t("outbox.no_words"))}</p>
              ${(item.why || item.status === "doubtful") && html`<p class="note">${item.status === "doubtful" ? t("outbox.doubtful") : item.why}</p>`}
              ${(attempts.length > 1 || item.status !== "sent") && html`<ul class="attempts">${attempts.map((one) => html`<li key=${one.number}>${t("span.try", { n: one.number })}, ${when(one.begun_at)}${one.ended_at ? `, ${duration(seconds(one.begun_at, one.ended_at))}` : ""}: ${one.outcome ? t(`send.${one.outcome}`) : t("span.open")}${one.why ? `, ${one.why}` : ""}</li>`)}</ul>`}
            </div>
            <div class="buttons">
              ${item.status === "doubtful" && html`<${Settle} item=${item} after=${reload} />`}
              ${item.run && html`<a href=${to(`/run/${item.run}`)}>${t("run.named", { id: short(item.run) })}</a>`}
            </div>
          </article>`) : html`<${Empty}>${t(rows.length ? "filter.none" : "outbox.empty")}<//>`}
      <//>
      <${Orders} rows=${orders} />
    </div>`;
}

const ORDER_KIND = { waiting: "warn", done: "ok", refused: "bad" };

/** What was ordered from the page: by whom, when, and how it went. */
function Orders({ rows }) {
  return html`
    <${Card} title=${t("orders")} count=${rows.length || undefined}>
      ${rows.length ? html`<table class="rows orders"><tbody>${rows.map((one) => html`
        <tr class="row" key=${one.id}><td class="n muted when">${when(one.at)}</td><td class="main">${named("orders.kind", one.kind)}</td>
          <td class="cut text"><bdi>${one.place_title}</bdi> <span class="mono">${one.kind === "stop place" ? "" : one.kind === "retry run" ? html`<a href=${to(`/run/${one.subject}`)}>${short(one.subject)}</a>` : short(one.subject)}</span></td>
          <td class="state"><${Chip} kind=${ORDER_KIND[one.status]}>${t(`orders.state.${one.status}`)}<//></td><td class="note">${one.why || one.who}</td></tr>`)}</tbody></table>`
        : html`<${Empty}>${t("orders.none")}<//>`}
    <//>`;
}

export function TasksPage() {
  const shown = useApi("/tasks", { every: 10 });
  return html`<${Loaded} of=${shown}>${(rows) => html`<${Tasks} rows=${[...rows].sort(byDue)} reload=${shown.reload} />`}<//>`;
}

const TASK_KIND = { pending: "accent", running: "accent", done: "ok", failed: "bad", cancelled: "" };

const byDue = (a, b) => (a.due_at < b.due_at ? -1 : 1);

function Tasks({ rows, reload }) {
  const [found, field] = useFilter(rows, (task) => `${taskWords(task)} ${task.kind} ${placeName(task.place)} ${task.status || "pending"} ${task.why || ""}`);
  const pending = rows.filter((task) => (task.status || "pending") === "pending").length;
  return html`
    <div class="page">
      <${Heading} title=${t("nav.tasks")} note=${t("tasks.note", { n: pending })} />
      <${Card} title=${t("nav.tasks")} count=${rows.length} side=${field}>
        ${found.length ? html`<table class="rows tasks">
          <thead><tr><th class="when">${t("tasks.due")}</th><th>${t("tasks.what")}</th><th>${t("place")}</th><th>${t("tasks.again")}</th><th>${t("places.state")}</th><th>${t("run")}</th></tr></thead>
          <tbody>${found.map((task) => html`
            <tr class="row" key=${task.id}><td class="n muted when">${when(task.due_at)}</td>
              <td class="main" dir="auto">${taskWords(task)}<small>${named("task", task.kind)}<${Whose} agent=${task.agent} lead=", " /></small></td>
              <td class="cut where"><bdi>${placeName(task.place)}</bdi></td><td class="muted">${task.again?.words || ""}</td>
              <td class="state"><${Chip} kind=${TASK_KIND[task.status || "pending"]}>${t(`task_status.${task.status || "pending"}`)}<//>${task.doubtful && html`<${Chip} kind="warn">${t("send.doubtful")}<//>`}
                ${task.why && html`<small>${task.why}</small>`}
                ${(task.status || "pending") === "pending" && html`<${Act} label=${t("tasks.cancel")} kind="bad" order=${{ kind: "cancel task", subject: task.id }} question=${t("tasks.cancel_question")} after=${reload} />`}</td>
              <td class="mono">${(task.made_by || task.run) && html`<a href=${to(`/run/${task.made_by || task.run}`)}>${short(task.made_by || task.run)}</a>`}</td></tr>`)}</tbody>
        </table>` : html`<${Empty}>${t(rows.length ? "filter.none" : "tasks.none")}<//>`}
      <//>
    </div>`;
}

export function MediaPage() {
  const shown = useApi("/media");
  return html`<${Loaded} of=${shown}>${(rows) => html`<${MediaList} rows=${rows} />`}<//>`;
}

const PICTURES = ["image/jpeg", "image/png", "image/webp", "image/gif"];

function MediaList({ rows }) {
  const [found, field] = useFilter(rows, (row) => `${row.kind} ${row.mime} ${row.description} ${row.message.author.name} ${row.why_not}`);
  return html`
    <div class="page">
      <${Heading} title=${t("nav.media")} note=${t("media.note", { n: rows.length })} />
      <${Card} title=${t("nav.media")} count=${rows.length} side=${field}>
        ${found.length ? html`<table class="rows media">
          <thead><tr><th>${t("media.file")}</th><th>${t("media.shows")}</th><th>${t("message")}</th><th class="n">${t("media.size")}</th></tr></thead>
          <tbody>${found.map((row) => html`
            <tr class="row" key=${`${row.unique_id} ${row.message.id}`}>
              <td class="thumb">${row.sha256 && PICTURES.includes(row.mime) ? html`<img src=${api(`/files/${row.sha256}`)} alt=${row.description || named("media", row.kind)} loading="lazy" />` : html`<span class="tool">${named("media", row.kind)}</span>`}</td>
              <td class="text" dir="auto">${row.description || html`<span class="muted">${row.why_not || t("media.no_words")}</span>`}<small>${named("media", row.kind)}${row.mime ? `, ${row.mime}` : ""}</small></td>
              <td class="text cut" dir="auto"><a href=${messageLink(row.place_key, row.message)}><span class="muted">${row.message.author.name}${row.message.sent_at ? `, ${when(row.message.sent_at)}` : ""} </span>${row.message.text}</a></td>
              <td class="n muted">${row.size === null ? "" : row.sha256 ? html`<a href=${api(`/files/${row.sha256}`)} download>${bytes(row.size)}</a>` : bytes(row.size)}</td></tr>`)}</tbody>
        </table>` : html`<${Empty}>${t(rows.length ? "filter.none" : "media.none")}<//>`}
      <//>
    </div>`;
}

export function UsagePage() {
  const shown = useApi("/usage");
  return html`<${Loaded} of=${shown}>${(page) => html`<${Usage} page=${page} />`}<//>`;
}

const GROUPS = { place: (row) => (row.place ? placeName(row.place) : t("usage.removed")), person: (row) => row.person?.name || t("nobody"), model: (row) => row.model, agent: (row) => agentOf(row.agent) };
const SUMS = ["calls", "input", "cached", "output", "thought", "money"];
const DAYS = 30;

/** Rows of the same place, person or model as one, what cost most first. */
function grouped(rows, by) {
  const found = new Map();
  for (const row of rows) {
    const which = by === "agent" ? agentOf(row.agent) : row[by];
    const key = JSON.stringify(which?.id ? [which.platform, which.id, which.thread] : which);
    const sum = found.get(key) || { key, name: GROUPS[by](row), ...Object.fromEntries(SUMS.map((one) => [one, 0])) };
    for (const one of SUMS) sum[one] += row[one];
    found.set(key, sum);
  }
  return [...found.values()].sort((a, b) => b.money - a.money || b.input - a.input);
}

/** The days up to the last one that is asked for, also those on which nothing was spent. */
function lastDays(rows) {
  const spent = new Map();
  for (const row of rows) spent.set(row.day, (spent.get(row.day) || 0) + row.money);
  const today = new Date();
  return Array.from({ length: DAYS }, (_, at) => {
    const one = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate() - DAYS + 1 + at)).toISOString().slice(0, 10);
    return [one, spent.get(one) || 0];
  });
}

const UsageFigures = ({ row }) => html`
  <td class="n" data-of=${t("usage.calls")}>${number(row.calls)}</td><td class="n wide">${number(row.input)}</td><td class="n wide muted">${share(row.cached, row.input)}</td><td class="n wide">${number(row.output + row.thought)}</td><td class="n">${money(row.money)}</td>`;

function Usage({ page }) {
  const { rows, total } = page;
  const { query } = useSignal(address);
  const [found, field] = useFilter(rows, (row) => `${row.day} ${row.model} ${row.place ? placeName(row.place) : ""} ${row.person?.name || ""}`);
  const several = useSignal(agents).length > 0;
  const by = query.by in GROUPS || query.by === "row" ? query.by : "place";
  const days = lastDays(rows);
  const highest = Math.max(...days.map(([, spent]) => spent), 1e-9);
  const groups = by === "row" ? [] : grouped(found, by);
  const all = groups.reduce((sum, one) => sum + one.money, 0) || 1;
  return html`
    <div class="page">
      <${Heading} title=${t("nav.usage")} note=${t("usage.note", { money: money(total.money), n: total.calls, tokens: total.input, share: share(total.cached, total.input) })} />
      <${Card} title=${t("usage.days")}><div class="days">${days.map(([one, spent], at) => html`
        <div key=${one} title=${`${one}: ${money(spent)}`}><span class="n">${spent === highest ? money(spent) : ""}</span><i class=${spent ? "" : "none"} style=${{ height: `${spent ? Math.max(3, (70 * spent) / highest) : 1}%` }} /><span class="n">${(DAYS - 1 - at) % 5 ? "" : day(one)}</span></div>`)}</div><//>
      <${Card} title=${t("nav.usage")} count=${by === "row" ? rows.length : groups.length} side=${html`
        <${Tabs} name="by" initial="place" current=${by} label=${t("usage.by")} of=${[...Object.keys(GROUPS).filter((name) => name !== "agent" || several), "row"].map((name) => [name, t(`usage.by.${name}`)])} />${field}`}>
        ${!found.length ? html`<${Empty}>${t(rows.length ? "filter.none" : "usage.none")}<//>` : by === "row" ? html`<table class="rows usage">
          <thead><tr><th>${t("usage.day")}</th><th>${t("place")}</th><th>${t("who")}</th><th>${t("usage.model")}</th><th class="n">${t("usage.calls")}</th><th class="n">${t("usage.input")}</th><th class="n">${t("places.cached")}</th><th class="n">${t("usage.output")}</th><th class="n">${t("cost")}</th></tr></thead>
          <tbody>${[...found].reverse().map((row, at) => html`
            <tr class="row" key=${at}><td class="n muted when">${day(row.day)}</td><td class="cut where main"><bdi>${GROUPS.place(row)}</bdi></td><td class="cut"><bdi>${row.person?.name || ""}</bdi></td>
              <td class="text cut">${row.model}</td><${UsageFigures} row=${row} /></tr>`)}</tbody>
        </table>` : html`<table class="rows usage by">
          <thead><tr><th>${t(`usage.by.${by}`)}</th><th>${t("usage.share")}</th><th class="n">${t("usage.calls")}</th><th class="n">${t("usage.input")}</th><th class="n">${t("places.cached")}</th><th class="n">${t("usage.output")}</th><th class="n">${t("cost")}</th></tr></thead>
          <tbody>${groups.map((row) => html`
            <tr class="row" key=${row.key}><td class="cut main"><bdi>${row.name}</bdi></td>
              <td class="bars"><span class="bar plain" role="img" aria-label=${share(row.money, all)}><i class="spent" style=${{ width: `${(100 * row.money) / all}%` }} /></span></td><${UsageFigures} row=${row} /></tr>`)}</tbody>
        </table>`}
      <//>
    </div>`;
}
