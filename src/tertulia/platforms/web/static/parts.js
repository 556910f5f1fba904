// Parts that the views share: cards, chips, avatars, bars to scale, people, confirmations.
import {
  address, agentOf, agents, api, ask, base, bytes, clock, day, html, isToday, money, named, number, readHome, said, session, setQuery, share, t, to, useEffect, useRef,
  useSignal, useState, when,
} from "./core.js";

/** One of the symbols in icons.svg. */
export const Icon = ({ name }) => html`<svg class="icon" aria-hidden="true"><use href=${`${base}/static/icons.svg#${name}`} /></svg>`;

export const Logo = () => html`
  <svg class="logo" viewBox="0 0 18 16" aria-hidden="true">
    <rect width="18" height="4" rx="2" class="f-static" /><rect y="6" width="12" height="4" rx="2" class="f-buffered" />
    <rect y="12" width="8" height="4" rx="2" class="f-trigger" />
  </svg>`;

const AGENTS = ["agent", "h1", "h2", "h3", "h0"]; // each of several has another one

/** Four hues for people, by their ids; agents have their own. */
function hue(author) {
  if (author.persona) return AGENTS[agents.peek().findIndex((one) => one.name === author.persona) % AGENTS.length] || "agent";
  let sum = 0;
  for (const character of author.id || "") sum = (sum * 31 + character.codePointAt(0)) % 9973;
  return `h${sum % 4}`;
}

export const Avatar = ({ author, large }) => html`
  <span class="avatar ${hue(author)} ${large ? "large" : ""}" aria-hidden="true">
    ${[...(author.name || "?").trim()].find((one) => /[\p{L}\p{N}]/u.test(one))?.toUpperCase() ?? "?"}
  </span>`;

/** Whose something is, where there are several agents. */
export function Whose({ agent, lead = "" }) {
  useSignal(agents);
  const name = agentOf(agent);
  return name && html`${lead}<bdi>${name}</bdi>`;
}

/** Whether an agent is in a place, or when it was. */
export const stayWords = (row) =>
  !row?.here ? (row?.until ? t("agents.until", { when: when(row.until) }) : t("agents.not_here"))
  : [row.default && t("agents.default_here"), row.since ? t("agents.since", { when: when(row.since) }) : t("agents.here")].filter(Boolean).join(", ");

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

// Writes. They are orders: the bot carries them out, in its own process at once, else when it finds them.

const AGAIN = 1000; // milliseconds after which an order that waits is looked at again

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** A button for an order, or for what *carry* does. It asks once, in place, and says what will happen; then how it went. */
export function Act({ label, order, carry = (shown) => ask("/orders", { method: "POST", body: shown ? { ...order, plan: shown } : order }), kind = "", plan, question, confirm, after, allowed }) {
  const [state, setState] = useState({ at: "" }); // asking, sending, failed, or as the order is: waiting, done, refused
  const here = useRef(null);
  const can = useSignal(session)?.can_write || allowed;
  useEffect(() => {
    if (state.at === "asking") here.current.querySelector("button:last-child").focus();
    if (["done", "refused", "failed"].includes(state.at)) here.current?.focus({ preventScroll: true });
  }, [state.at]);
  if (!can) return null;

  const failed = (error) => setState({ at: "failed", why: error.message });
  const begin = async (why) => setState({ at: "asking", why, plan: plan && (await ask(plan)) });

  async function carryOut() {
    const shown = state.plan;
    setState({ at: "sending" });
    try {
      let now = await carry(shown);
      while (now?.status === "waiting" && here.current) {
        setState({ at: "waiting" });
        await pause(AGAIN);
        now = await ask(`/orders/${encodeURIComponent(now.id)}`);
      }
      const at = now?.status || "done";
      setState({ at, why: now?.why });
      if (session.peek().role !== "guest") readHome();
      after?.(at);
    } catch (error) {
      if (error.status === 409 && plan) return begin(error.message).catch(failed);
      failed(error);
    }
    return undefined;
  }

  if (state.at === "asking") {
    return html`
      <div class="confirm ${kind.includes("bad") ? "bad" : ""}" role="group" aria-label=${label} ref=${here}
        onKeyDown=${(event) => event.key === "Escape" && (event.stopPropagation(), setState({ at: "" }))}>
        ${state.why && html`<p class="warn" role="alert">${state.why}</p>`}
        <p>${question}</p>
        ${state.plan && html`<${Plan} plan=${state.plan} />`}
        <div class="buttons">
          <button type="button" class="solid ${kind.includes("bad") ? "bad" : ""}" onClick=${carryOut}>${confirm || label}</button>
          <button type="button" onClick=${() => setState({ at: "" })}>${t("act.leave")}</button>
        </div>
      </div>`;
  }
  const isOver = ["waiting", "done"].includes(state.at);
  return html`
    <span class="act" ref=${here} tabindex="-1">
      ${!isOver && html`<button type="button" class=${kind} disabled=${state.at === "sending"} onClick=${() => begin().catch(failed)}>${label}</button>`}
      <span role="status" class=${["failed", "refused"].includes(state.at) ? "bad" : "muted"}>${state.at in SAID ? t(SAID[state.at], { why: state.why }) : ""}</span>
    </span>`;
}

const SAID = { waiting: "order.waiting", done: "order.done", refused: "order.refused", failed: "order.failed" };

const Plan = ({ plan }) => html`
  <ul class="plan">
    ${Object.entries(plan.rows).filter(([, count]) => count).map(([section, count]) => html`
      <li key=${section}>${named("section", section)} <b>${number(count)}</b></li>`)}
    ${plan.files > 0 && html`<li>${t("section.files")} <b>${number(plan.files)}</b></li>`}
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
const KINDS = { photo: "image", image: "image", voice: "audio", audio: "audio", music: "audio", video: "video", video_note: "video", animation: "video" };

export function MediaView({ media, source = media.unique_id && api(`/files/${encodeURIComponent(media.unique_id)}`) }) {
  const [broken, setBroken] = useState(false);
  const kind = named("media", media.media_kind);
  const words = media.rendered_text || media.label || kind;
  const shows = media.mime ? (IMAGES.includes(media.mime) ? "image" : /^(?:audio|video)(?=\/)/.exec(media.mime)?.[0]) : KINDS[media.media_kind];
  const failed = () => setBroken(true);
  if (!source || broken) return html`<span class="tool"><${Icon} name="file" /><span class="muted">${kind}</span>${words !== kind && words}</span>`;
  switch (shows) {
    case "image": return html`<a class="shot" href=${source} target="_blank" rel="noopener"><img class="photo" src=${source} width=${media.width} height=${media.height} alt=${words} loading="lazy" onError=${failed} /></a>`;
    case "video": return html`<video class="photo" src=${source} controls preload="metadata" aria-label=${words} onError=${failed} />`;
    case "audio": return html`<audio src=${source} controls preload="metadata" aria-label=${words} onError=${failed} />`;
    default: return html`<a class="tool" href=${source} download=${media.label || ""}><${Icon} name="file" /><span>${words}</span>${media.size && html`<span class="muted">${bytes(media.size)}</span>`}</a>`;
  }
}

/** The arguments of a call in a line, without their names. */
export const argumentsOf = (call) => Object.values(call.args || {}).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ");

export function ToolChip({ run }) {
  const { call, result } = run;
  return html`
    <details class="tool-run">
      <summary class="tool ${result?.failed ? "bad" : ""}">
        <${Icon} name="tool" /><code>${call.name}</code><span class="cut">${argumentsOf(call)}</span>
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

/** A search in the rows that are here; its words are in the address. */
export function useFilter(rows, wordsOf) {
  const wanted = useSignal(address).query.filter || "";
  const low = wanted.trim().toLowerCase();
  const found = low ? rows.filter((row) => wordsOf(row).toLowerCase().includes(low)) : rows;
  const field = html`
    <input type="search" class="filter" value=${wanted} placeholder=${t("filter")} aria-label=${t("filter")}
      onInput=${(event) => setQuery({ filter: event.target.value })} />`;
  return [found, field];
}

export const Checks = ({ checks }) => html`
  <ul class="checks">${checks.map((check, at) => html`<li key=${at} class=${check.ok ? "ok" : "bad"}><b>${check.ok ? "✓" : "✗"}</b><span class="hidden">${t(check.ok ? "check.ok" : "check.bad")}: </span>${said(check.what)}</li>`)}</ul>`;

/** A text with words marked, letter by letter. */
export function Marked({ text, words }) {
  if (!words.length) return text;
  const wanted = [...words].sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pieces = text.split(new RegExp(`((?<![\\p{L}\\p{N}])(?:${wanted.join("|")})(?![\\p{L}\\p{N}]))`, "giu"));
  return pieces.map((piece, at) => (at % 2 ? html`<mark key=${at}>${piece}</mark>` : piece));
}
