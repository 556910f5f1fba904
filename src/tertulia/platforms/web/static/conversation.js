// A conversation as it comes: its stream, its log that stays where one reads, and a message in it.
import { api, clock, day, html, t, textOf, useEffect, useRef, useSignal, useState } from "./core.js";
import { Avatar, Chip, Icon, MediaView, Name, ToolChip } from "./parts.js";
import { heard, plain, Text } from "./text.js";

export const MOST = 400; // messages in the page
const REOPENED = 3000; // milliseconds after which a stream that the server refused is opened again
const NEAR = 300; // pixels from the top at which earlier messages are read
const EVENTS = ["change", "live", "delta", "people", "ended"];
const SPOKEN = 6; // sentences that a screen reader may still be reading

/** Follow a stream. It comes back by itself, behind the last event that was seen, so nothing is lost or doubled. */
export function useStream(path, after, on) {
  const handlers = useRef(on);
  handlers.current = on;
  useEffect(() => {
    if (path === null) return undefined;
    let source = null;
    let timer = 0;
    let last = after;
    function open() {
      source = new EventSource(api(`${path}?after=${last}`));
      for (const kind of EVENTS) {
        source.addEventListener(kind, (event) => {
          last = event.lastEventId || last;
          handlers.current[kind]?.(JSON.parse(event.data));
        });
      }
      source.onopen = () => handlers.current.connected?.(true);
      source.onerror = () => {
        handlers.current.connected?.(false);
        if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPENED);
      };
    }
    open();
    return () => (clearTimeout(timer), source.close());
  }, [path]);
}

/** The texts that are being written, by their runs. */
export function useLive() {
  const [texts, setTexts] = useState({});
  return {
    texts,
    live: ({ run_id: id, text }) => setTexts((before) => ({ ...before, [id]: text })),
    delta: ({ run_id: id, text }) => setTexts((before) => ({ ...before, [id]: (before[id] || "") + text })),
    only: (isOpen) => setTexts((before) => (Object.keys(before).every(isOpen) ? before : Object.fromEntries(Object.entries(before).filter(([id]) => isOpen(id))))),
  };
}

/** The log: the newest stays in view, and what is read stays where it is when earlier messages come above it. */
export function Log({ rows, label, earlier, noMore, busy, at, moving, jump, children }) {
  const box = useRef(null);
  const follows = useRef(true);
  const held = useRef(null);
  useEffect(() => {
    const log = box.current;
    if (!rows.length) return;
    if (held.current) {
      log.scrollTop += log.scrollHeight - held.current;
      held.current = null;
    } else if (at) {
      if (follows.current) document.getElementById(`m-${at}`)?.scrollIntoView({ block: "center" });
    } else if (follows.current) {
      log.scrollTop = log.scrollHeight;
    }
  }, [rows, moving]);
  useEffect(() => {
    if (!jump) return;
    follows.current = true;
    box.current.scrollTop = box.current.scrollHeight;
  }, [jump]);
  useEffect(() => {
    const log = box.current;
    const resized = new ResizeObserver(() => follows.current && !at && (log.scrollTop = log.scrollHeight));
    resized.observe(log.firstElementChild);
    return () => resized.disconnect();
  }, [at]);
  const more = () => {
    held.current = box.current.scrollHeight;
    earlier();
  };
  const scrolled = () => {
    if (!box.current) return; // it was left meanwhile
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    follows.current = scrollHeight - scrollTop - clientHeight < 40;
    if (scrollTop < NEAR && !noMore && !busy) more();
  };
  return html`
    <div class="log" role="log" aria-live="off" aria-label=${label} tabindex="0" ref=${box} onScroll=${scrolled}>
      <div class="inner">
        ${noMore ? html`<p class="rule">${t("place.beginning")}</p>` : html`<p class="rule"><button type="button" class="plain" onClick=${more}>${t("place.earlier")}</button></p>`}
        ${children}
      </div>
    </div>`;
}

const sentencesOf = (text) => [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text)].map((one) => one.segment.trim()).filter(Boolean);

/** What a screen reader says: new messages, and whole sentences of an answer while it is written. */
export function Announcer({ rows, agent, runOf, mine }) {
  const [said, setSaid] = useState([]);
  const last = useRef(rows[rows.length - 1]?.number ?? -1);
  const spoken = useRef({}); // how many sentences of a run
  const say = (words) => words.length && setSaid((before) => [...before, ...words.map((one) => ({ id: crypto.randomUUID(), one }))].slice(-SPOKEN));
  const texts = useSignal(heard);
  useEffect(() => {
    for (const [run, text] of Object.entries(texts)) {
      const all = sentencesOf(text).slice(0, -1); // the last one may go on
      const before = spoken.current[run] || 0;
      if (all.length > before) say([...(before ? [] : [`${agent}:`]), ...all.slice(before)]);
      spoken.current[run] = Math.max(before, all.length);
    }
  }, [texts]);
  useEffect(() => {
    for (const one of rows.filter((row) => row.number > last.current)) {
      const { message } = one;
      const words = plain(textOf(message.parts));
      const run = runOf(one);
      if (run && spoken.current[run]) say(sentencesOf(words).slice(spoken.current[run]));
      else if (message.author.id !== mine) say([`${message.author.name}: ${words}`]);
    }
    last.current = Math.max(last.current, rows[rows.length - 1]?.number ?? -1);
  }, [rows]);
  return html`<div class="hidden" aria-live="polite" aria-relevant="additions">${said.map(({ id, one }) => html`<p key=${id}>${one}</p>`)}</div>`;
}

/** A tap on a message shows what can be done with it. */
const tapped = ({ target, currentTarget }) => matchMedia("(hover: none)").matches && !target.closest("a, button, summary, audio, video") && currentTarget.focus();

const newDay = (message, before) => message.sent_at && (!before?.sent_at || day(before.sent_at) !== day(message.sent_at));

/** A message: who, when, what it answers, what was done for it, its words; *meta* and *below* are of the view. */
export function Said({ one, before, own, files, tools = [], thoughts = [], meta, below, tools_of: tray, quoted, chosen, onKeyDown }) {
  const { message } = one;
  const { author } = message;
  const media = (message.parts || []).filter((part) => part.kind === "media");
  const text = textOf((message.parts || []).filter((part) => part.kind === "text"));
  return html`
    ${newDay(message, before?.message) && html`<p class="rule">${day(message.sent_at)}</p>`}
    <article onClick=${tapped} class="message ${chosen ? "chosen" : ""}" id=${`m-${message.id}`} lang=${author.language || undefined} data-row tabindex="-1" onKeyDown=${onKeyDown}
      aria-label=${`${author.name || t("nobody")}${message.sent_at ? `, ${clock(message.sent_at)}` : ""}`}>
      <${Avatar} author=${own ? { ...author, persona: author.persona || author.name } : author} />
      <div class="body">
        <p class="meta"><${Name} author=${author} />
          ${own && html`<${Chip}>${t("agent")}<//>`}
          ${message.sent_at && html`<time datetime=${message.sent_at}>${clock(message.sent_at)}</time>`}
          ${message.edited_at && html`<span>${t("message.edited")}</span>`}
          ${message.forwarded_from && html`<span>${t("message.forwarded", { name: message.forwarded_from.name })}</span>`}
          ${meta}</p>
        ${message.reply_to && message.reply_to.message_id !== before?.message.id && html`<${Quote} quote=${message.reply_to} onOpen=${quoted} />`}
        ${thoughts.length > 0 && html`<${Thoughts} texts=${thoughts} />`}
        ${tools.map((run) => html`<${ToolChip} key=${`${run.step}.${run.number}`} run=${run} />`)}
        ${media.map((part) => html`<${MediaView} key=${part.unique_id} media=${part} source=${files(part)} />`)}
        ${message.deleted ? html`<p class="muted">${t("message.deleted")}</p>` : text && html`<${Text} text=${text} />`}
        ${below}
      </div>
      ${tray}
    </article>`;
}

export const Thoughts = ({ texts }) => html`
  <details class="tool-run thoughts"><summary class="tool"><${Icon} name="memory" />${t("part.thought")}</summary><div class="muted">${texts.map((one, at) => html`<${Text} key=${at} text=${one} />`)}</div></details>`;

function Quote({ quote, onOpen }) {
  const words = html`${quote.author && html`<span class="muted">${quote.author.name}: </span>`}${quote.excerpt || plain(textOf(quote.parts)) || t("message.media")}`;
  return onOpen ? html`<button type="button" class="plain quote cut" dir="auto" onClick=${() => onOpen(quote.message_id)}>${words}</button>` : html`<p class="quote cut" dir="auto">${words}</p>`;
}
