// Parts that the views share: cards, chips, avatars, bars to scale, people, confirmations.
import {
  api, ask, clock, day, html, isToday, money, named, number, session, setQuery, share, t, to, useEffect, useRef,
  useSignal, useState, when,
} from "./core.js";

const PATHS = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z",
  places: "M2.5 3h11v8h-6L4.5 13.5V11h-2z",
  runs: "M2.5 4h7M2.5 8h11M2.5 12h5",
  memory: "M8 1.8a4.4 4.4 0 0 0-2.4 8.1V12h4.8V9.9A4.4 4.4 0 0 0 8 1.8zM6.3 14.2h3.4",
  outbox: "M2.5 8.5 4.5 3h7l2 5.5v4.5h-11zM2.5 8.5h3.2l1 1.8h2.6l1-1.8h3.2",
  tasks: "M8 2.2a5.8 5.8 0 1 0 0 11.6 5.8 5.8 0 0 0 0-11.6zM8 5v3.2l2.2 1.4",
  media: "M2.5 3h11v10h-11zM2.5 11l3.5-3.5 3 3 2-2 2.5 2.5M10.5 6h.01",
  usage: "M3 13V8M6.3 13V3.5M9.7 13V6M13 13V9.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 13.5 13.5",
  tool: "M9.6 6.4 4 12l-1.5-1.5 5.6-5.6a3 3 0 0 1 4-3.3L10.3 3.4l.4 1.9 1.9.4 1.8-1.8a3 3 0 0 1-4 3.3z",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  stop: "M4.5 4.5h7v7h-7z",
  eye: "M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 6.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4z",
  file: "M4 1.8h5l3.5 3.5v8.9H4zM9 1.8v3.5h3.5",
  theme: "M8 2.2a5.8 5.8 0 1 0 5.8 6.6A4.6 4.6 0 0 1 8 2.2z",
};

export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

export const Logo = () => html`
  <svg class="logo" viewBox="0 0 18 16" aria-hidden="true">
    <rect width="18" height="4" rx="2" class="f-static" /><rect y="6" width="12" height="4" rx="2" class="f-buffered" />
    <rect y="12" width="8" height="4" rx="2" class="f-trigger" />
  </svg>`;

/** Four hues for people, by their ids; agents have their own. */
function hue(author) {
  if (author.persona) return "agent";
  let sum = 0;
  for (const character of author.id || "") sum = (sum * 31 + character.codePointAt(0)) % 9973;
  return `h${sum % 4}`;
}

export const Avatar = ({ author, large }) => html`
  <span class="avatar ${hue(author)} ${large ? "large" : ""}" aria-hidden="true">
    ${[...(author.name || "?").trim()].find((one) => /[\p{L}\p{N}]/u.test(one))?.toUpperCase() ?? "?"}
  </span>`;

export const Name = ({ author }) => html`<bdi class="name">${author.name || t("nobody")}</bdi>`;

export const Card = ({ title, count, side, children, kind = "" }) => html`
  <section class="card ${kind}">
    ${title && html`
      <header><h2>${title}${count !== undefined && count !== null && html`<span class="count">${count}</span>`}</h2>
        ${side && html`<div class="side">${side}</div>`}</header>`}
    ${children}
  </section>`;

export const Chip = ({ kind = "", dot, children, title }) => html`
  <span class="chip ${kind}" title=${title}>${dot && html`<i class="dot" />`}${children}</span>`;

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** One sentence that a person would say, then the numbers. */
export const Heading = ({ title, note, side, avatar }) => html`
  <div class="heading">
    ${avatar}
    <div class="grow"><h1 dir="auto">${title}</h1>${note && html`<p class="note">${note}</p>`}</div>
    ${side && html`<div class="side">${side}</div>`}
  </div>`;

/** What stands where an answer of the API will be, or why there is none. */
export function Loaded({ of, children }) {
  if (of.data) {
    return html`${of.error && html`<p class="notice bad" role="alert">${of.error.message}</p>`}${children(of.data)}`;
  }
  if (of.error) return html`<div class="page"><p class="notice bad" role="alert">${of.error.message}</p></div>`;
  return html`<div class="page" aria-busy="true"><div class="skeleton" /><div class="skeleton low" /></div>`;
}

export const Tabs = ({ name, of, current, initial, label }) => html`
  <div class="tabs" role="group" aria-label=${label}>
    ${of.map(([value, words]) => html`
      <button key=${value} type="button" aria-pressed=${value === current ? "true" : "false"}
        onClick=${() => setQuery({ [name]: value === initial ? "" : value })}>${words}</button>`)}
  </div>`;

export function StateChip({ row }) {
  const chips = [];
  if (row.state === "answering") chips.push(html`<${Chip} kind="accent" dot>${t("state.answering")}<//>`);
  if (row.waiting) chips.push(html`<${Chip} kind="warn">${t("state.waits", { n: row.waiting })}<//>`);
  if (row.to_decide) chips.push(html`<${Chip} kind="warn">${t("state.decide", { n: row.to_decide })}<//>`);
  if (row.state === "failed") {
    chips.push(html`<${Chip} kind="bad" title=${row.why}>${t("state.failed", { when: row.since ? when(row.since) : "" })}<//>`);
  }
  return chips.length ? html`<span class="chips">${chips}</span>` : html`<span class="muted">${t("state.quiet")}</span>`;
}

// Bars to scale

/**
 * A request as one bar: pale is cached, full colour is new. Lengths are the service's tokens where it counted them:
 * our estimates of the layers are stretched to its sum.
 */
export function LayerBar({ layers, size, counted, cached = 0, whole, tall, chosen, onChoose }) {
  const parts = partsOf(layers, size);
  const estimated = parts.reduce((sum, part) => sum + part.tokens, 0) || 1;
  const total = counted || estimated;
  const scale = total / estimated;
  let position = 0;
  const pieces = [];
  for (const part of parts) {
    const tokens = part.tokens * scale;
    const old = Math.max(0, Math.min(tokens, cached - position));
    position += tokens;
    if (old > 0) pieces.push({ ...part, tokens: old, cached: true });
    if (tokens - old > 0) pieces.push({ ...part, tokens: tokens - old, cached: false });
  }
  const sentence = t(counted ? "bar.counted" : "bar.about", { tokens: total, share: share(cached, total) });
  return html`
    <div class="bar ${tall ? "tall" : ""}" role="img" aria-label=${sentence}>
      ${pieces.map((piece) => html`
        <i class="${piece.cached ? "old" : ""} b-${piece.name} ${chosen === piece.name ? "chosen" : ""}"
          style=${{ width: `${(100 * piece.tokens) / (whole || total)}%` }}
          title=${`${layerName(piece.name)}: ${number(piece.tokens)}, ${t(piece.cached ? "cached" : "new")}`}
          onClick=${onChoose && (() => onChoose(piece.name))} />`)}
    </div>`;
}

/** The layers of a request with their estimated tokens, tools first. */
export function partsOf(layers, size = {}) {
  const sizes = size.layers || [];
  const tools = size.tools ? [{ name: "tools", tokens: size.tools }] : [];
  return [...tools, ...layers.map((name, at) => ({ name, tokens: sizes[at] || 0 }))].filter((part) => part.tokens);
}

export const layerName = (name) => named("layer", name);
export const totalOf = (size = {}) => (size.tools || 0) + (size.layers || []).reduce((sum, one) => sum + one, 0);

export const Legend = ({ layers }) => html`
  <ul class="legend">${layers.map((name) => html`<li key=${name}><i class="b-${name}" />${layerName(name)}</li>`)}</ul>`;

// Writes. They are orders: the bot carries them out.

/** A button for an effect that is named. With *plan* it asks once, in place, and says what will happen. */
export function Act({ label, path, method = "POST", kind = "", plan, question, confirm, after, disabled }) {
  const [state, setState] = useState("");
  const [planned, setPlanned] = useState(null);
  const [said, setSaid] = useState("");
  const region = useRef(null);
  const can = useSignal(session)?.can_write;
  useEffect(() => {
    if (state === "asking") region.current?.querySelector("button")?.focus();
  }, [state]);
  if (!can) return null;

  async function begin(event) {
    event.preventDefault();
    if (!question) return carryOut();
    try {
      setPlanned(plan ? await ask(plan) : null);
      setState("asking");
    } catch (error) {
      setSaid(error.message);
      setState("failed");
    }
    return undefined;
  }

  async function carryOut() {
    setState("sending");
    try {
      await ask(path, { method });
      setState("done");
      setSaid(t("act.done"));
      for (const pause of [300, 1500, 4000]) setTimeout(() => after?.(), pause);
    } catch (error) {
      setState("failed");
      setSaid(error.message);
    }
  }

  if (state === "asking") {
    return html`
      <div class="confirm" role="group" aria-label=${label} ref=${region}
        onKeyDown=${(event) => event.key === "Escape" && (event.stopPropagation(), setState(""))}>
        <p>${typeof question === "function" ? question(planned) : question}</p>
        ${planned && html`<${Plan} plan=${planned} />`}
        <div class="buttons">
          <button type="button" class="bad solid" onClick=${carryOut}>${confirm || label}</button>
          <button type="button" onClick=${() => setState("")}>${t("act.leave")}</button>
        </div>
      </div>`;
  }
  return html`
    <span class="act">
      ${state !== "done" && html`
        <button type="button" class=${kind} disabled=${disabled || state === "sending"} onClick=${begin}>${label}</button>`}
      <span role="status" class=${state === "failed" ? "bad" : "muted"}>${state === "done" || state === "failed" ? said : ""}</span>
    </span>`;
}

const Plan = ({ plan }) => html`
  <ul class="plan">
    ${Object.entries(plan.rows).filter(([, count]) => count).map(([section, count]) => html`
      <li key=${section}><b>${number(count)}</b> ${named("section", section)}</li>`)}
    ${plan.files > 0 && html`<li><b>${number(plan.files)}</b> ${t("section.files")}</li>`}
    ${!plan.files && !Object.values(plan.rows).some(Boolean) && html`<li>${t("plan.nothing")}</li>`}
  </ul>${plan.note && html`<p class="note">${plan.note}</p>`}`;

export function Copy({ text, label, id }) {
  const [done, setDone] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(typeof text === "function" ? await text() : text);
    setDone(true);
    setTimeout(() => setDone(false), 1600);
  }
  return html`
    <button type="button" id=${id} onClick=${copy}><${Icon} name="copy" />${done ? t("copied") : label}</button>
    <span class="hidden" role="status">${done ? t("copied") : ""}</span>`;
}

// Media and tools in a conversation

const IMAGES = ["image/jpeg", "image/png", "image/webp", "image/gif"];

export function MediaView({ media }) {
  const [broken, setBroken] = useState(false);
  const words = media.rendered_text || media.label || named("media", media.media_kind);
  const source = media.sha256 && api(`/files/${media.sha256}`);
  if (source && !broken) {
    const type = media.mime || "";
    const failed = () => setBroken(true);
    if (IMAGES.includes(type)) {
      return html`<img class="photo" src=${source} alt=${words} loading="lazy" onError=${failed} />`;
    }
    if (type.startsWith("video/")) return html`<video class="photo" src=${source} controls preload="metadata" aria-label=${words} onError=${failed} />`;
    if (type.startsWith("audio/")) return html`<audio src=${source} controls preload="metadata" aria-label=${words} onError=${failed} />`;
    return html`<a class="tool" href=${source} download><${Icon} name="file" /><span>${words}</span></a>`;
  }
  return html`<span class="tool"><${Icon} name="file" /><span>${named("media", media.media_kind)}</span>${words}</span>`;
}

export function ToolChip({ run }) {
  const { call, result } = run;
  const args = Object.values(call.args || {}).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ");
  return html`
    <details class="tool-run">
      <summary class="tool ${result?.failed ? "bad" : ""}">
        <${Icon} name="tool" /><code>${call.name}</code><span class="cut">${args}</span>
        ${run.ended_at && html`<span class="muted">${durationOf(run)}</span>`}
        ${result?.failed && html`<span>${t("failed")}</span>`}
      </summary>
      <pre>${JSON.stringify(call.args || {}, null, 2)}</pre>
      <pre>${result ? shown(result.value) : t("tool.no_result")}</pre>
    </details>`;
}

const durationOf = (run) => {
  const passed = new Date(run.ended_at) - new Date(run.began_at);
  return passed < 1000 ? `${passed} ${t("unit.ms")}` : `${(passed / 1000).toFixed(2)} ${t("unit.s")}`;
};
export const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2));

/** JSON with its keys coloured. It is text all the way: nothing in it becomes markup. */
export function Json({ text }) {
  if (text.length > 300_000) return html`<pre class="json">${text}</pre>`;
  const pieces = text.split(/("(?:[^"\\]|\\.)*"(?=\s*:))/g);
  return html`<pre class="json">${pieces.map((piece, at) => (at % 2 ? html`<b>${piece}</b>` : piece))}</pre>`;
}

export const messageLink = (key, message) =>
  to(`/p/${key}`, { before: message.number === undefined ? "" : message.number + 20, at: message.id });

export const Money = ({ spent, digits }) =>
  spent.calls && spent.unpriced === spent.calls ? html`<span title=${t("price.unknown")}>?</span>` : money(spent.money, digits);

export const Moment = ({ at }) => html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${isToday(at) ? clock(at) : `${day(at)}, ${clock(at)}`}</time>`;

/** A search in the rows that are here. */
export function useFilter(rows, wordsOf) {
  const [wanted, setWanted] = useState("");
  const low = wanted.trim().toLowerCase();
  const found = low ? rows.filter((row) => wordsOf(row).toLowerCase().includes(low)) : rows;
  const field = html`
    <input type="search" class="filter" value=${wanted} placeholder=${t("filter")} aria-label=${t("filter")}
      onInput=${(event) => setWanted(event.target.value)} />`;
  return [found, field];
}

export const Checks = ({ checks }) => html`
  <ul class="checks">${checks.map((check, at) => html`<li key=${at} class=${check.ok ? "ok" : "bad"}><b>${check.ok ? "✓" : "✗"}</b><span class="hidden">${t(check.ok ? "check.ok" : "check.bad")}: </span>${check.what}</li>`)}</ul>`;
