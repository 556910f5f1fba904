// The time line of a run: from the message to its reply, to scale, with idle time folded.
import { duration, exact, html, ms, share, t } from "../core.js";
import { argumentsOf } from "../parts.js";

const IDLE = 2000; // milliseconds in which nobody did anything; more of them is folded
const FOLDED = 0.07; // of the width, for a stripe
const WAITING = ["wait", "retry"];

/** The scale of spans: pieces of time, those of idleness folded to a stripe of one width. */
function scaleOf(spans, { fold }) {
  const ends = spans.map((span) => (span.ended_at ? ms(span.ended_at) : ms(span.begun_at)));
  const start = Math.min(...spans.map((span) => ms(span.begun_at)));
  const end = Math.max(...ends, start + 1);
  const moments = [...new Set([start, ...spans.map((span) => ms(span.begun_at)), ...ends, end])].sort((a, b) => a - b);
  const busy = spans.filter((span) => !WAITING.includes(span.kind));
  const pieces = [];
  for (let at = 1; at < moments.length; at += 1) {
    const [from, until] = [moments[at - 1], moments[at]];
    const works = busy.some((span) => ms(span.begun_at) <= from && ms(span.ended_at || span.begun_at) >= until);
    pieces.push({ from, until, folded: fold && !works && until - from > IDLE });
  }
  const folded = pieces.filter((piece) => piece.folded);
  const open = pieces.filter((piece) => !piece.folded).reduce((sum, piece) => sum + piece.until - piece.from, 0) || 1;
  const room = 1 - FOLDED * folded.length;
  let left = 0;
  for (const piece of pieces) {
    piece.left = left;
    piece.width = piece.folded ? FOLDED : (room * (piece.until - piece.from)) / open;
    left += piece.width;
  }
  const position = (moment) => {
    const piece = pieces.find((one) => moment <= one.until) || pieces[pieces.length - 1];
    return piece.left + piece.width * Math.max(0, Math.min(1, (moment - piece.from) / (piece.until - piece.from)));
  };
  return { start, end, pieces, folded, position, open, room };
}

const APART = { narrow: 0.22, wide: 0.06 }; // of the width, between two marks of the axis
const STEPS = [50, 100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000];

function ticks({ start, pieces, position, open, room }) {
  const step = STEPS.find((one) => (open / one) / room <= 8) || STEPS[STEPS.length - 1];
  const found = [];
  for (const piece of pieces.filter((one) => !one.folded)) {
    for (let moment = start + Math.ceil((piece.from - start) / step) * step; moment < piece.until; moment += step) {
      const left = position(moment);
      if (!found.length || left - found[found.length - 1].left > APART[matchMedia("(max-width: 899px)").matches ? "narrow" : "wide"]) found.push({ left, words: label((moment - start) / 1000) });
    }
  }
  return found;
}

const label = (seconds) => `${Number(seconds.toFixed(2))} ${t("unit.s")}`;

export function spanName(span) {
  if (span.kind === "tool") return html`<code>${span.label}</code>`;
  const known = { wait: "span.wait", gather: "span.gather", retry: "span.retry" }[span.kind];
  return known ? t(known) : span.kind === "request" && span.step !== null
    ? t("span.request", { n: span.step + 1 }) + attempt(span.label) : span.kind === "send" && !/draft/i.test(span.label) ? t("span.send") + attempt(span.label) : span.label;
}
const attempt = (words) => { const found = /try (\d+)/.exec(words); return found ? `, ${t("span.try", { n: Number(found[1]) })}` : ""; };

const lasted = (span) => (span.ended_at ? (ms(span.ended_at) - ms(span.begun_at)) / 1000 : null);

export function Timeline({ shown, form, step, onStep }) {
  const spans = shown.spans.map((span) => ({ ...span, note: noteOf(span, shown) }));
  if (form === "events") return html`<${Events} spans=${spans} />`;
  const scale = scaleOf(spans, { fold: form === "compact" });
  const marks = ticks(scale);
  return html`
    <div class="timeline ${form}">
      <div class="axis" aria-hidden="true">
        <span />
        <div class="track">${marks.map((mark) => html`<span key=${mark.left} style=${{ left: `${100 * mark.left}%` }}>${mark.words}</span>`)}</div>
      </div>
      <ol>
        ${spans.map((span, at) => html`<${Bar} key=${at} span=${span} scale=${scale} marks=${marks} chosen=${span.kind === "request" && span.step === step} onStep=${onStep} form=${form} />`)}
      </ol>
      ${scale.folded.length > 0 && html`<p class="note folded-note">${t("run.folded", { n: scale.folded.length, time: scale.folded.map((one) => duration((one.until - one.from) / 1000)).join(", ") })}</p>`}
    </div>`;
}

function Bar({ span, scale, marks, chosen, onStep, form }) {
  const from = scale.position(ms(span.begun_at));
  const until = scale.position(ms(span.ended_at || span.begun_at));
  const took = lasted(span);
  const name = spanName(span);
  const opens = span.kind === "request" && span.step !== null;
  return html`
    <li class="${span.kind} ${span.failed ? "failed" : ""} ${chosen ? "chosen" : ""}">
      <span class="label">${opens ? html`<button type="button" class="plain" onClick=${() => onStep(span.step)}>${name}</button>` : name}</span>
      <span class="track" aria-hidden="true">
        ${marks.map((mark) => html`<i key=${mark.left} class="mark" style=${{ left: `${100 * mark.left}%` }} />`)}
        <i class="span" style=${{ left: `${100 * from}%`, width: `${100 * Math.max(0, until - from)}%` }} />
        ${scale.folded.map((piece) => html`<i key=${piece.from} class="fold" style=${{ left: `${100 * piece.left}%`, width: `${100 * piece.width}%` }} />`)}
      </span>
      <span class="took n">${took === null ? t("span.open") : duration(took)}</span>
      <span class="own">${form === "timeline" && html`<span class="muted">${exact(span.begun_at)} </span>`}<span title=${span.note}>${span.note}</span></span>
    </li>`;
}

/** What a bar says of itself, in the language of the page where its words are ours. */
function noteOf(span, { taken, recalled, replies, steps }) {
  const at = ms(span.begun_at);
  switch (span.kind) {
    case "wait": return taken.length > 1 ? t("span.messages", { n: taken.length }) : t("span.waited");
    case "gather": return gathered(recalled, steps[0]?.left_out || []);
    case "tool": return argumentsOf(steps.flatMap((one) => one.tool_runs).find((one) => one.step === span.step && ms(one.began_at) === at && one.call.name === span.label)?.call || {}) || span.note;
    case "send": { const attempt = replies.flatMap((one) => one.attempts).find((one) => ms(one.begun_at) === at); return attempt?.outcome && !attempt.why ? t(`send.${attempt.outcome}`) : span.note; }
    case "request": { const used = steps.flatMap((one) => one.calls).find(({ call }) => ms(call.begun_at) === at)?.call.usage; return used?.input && !span.failed ? t("span.used", { input: used.input, share: share(used.cached || 0, used.input), output: (used.output || 0) + (used.thought || 0) }) : span.note; }
    default: return span.note;
  }
}

/** What the sources gave, and how much they left out. */
function gathered(recalled, left) {
  const count = (kind) => recalled.filter(({ thing }) => thing.kind === kind).length;
  const found = ["fact", "message", "episode"].filter(count).map((kind) => t(`gathered.${kind}`, { n: count(kind) })).join(", ");
  const out = left.reduce((sum, one) => sum + (one.count ?? 1), 0);
  return [found || t("gathered.nothing"), out && t("gathered.left", { n: out })].filter(Boolean).join("; ");
}

const Events = ({ spans }) => {
  const events = spans.flatMap((span) => [
    { at: span.begun_at, span, what: "span.begins" },
    ...(span.ended_at ? [{ at: span.ended_at, span, what: "span.ends" }] : []),
  ]).sort((a, b) => ms(a.at) - ms(b.at));
  return html`
    <table class="rows events">
      <tbody>${events.map(({ at, span, what }, index) => html`
        <tr key=${index}><td class="n mono muted">${exact(at)}</td><td>${spanName(span)}</td><td class="muted">${t(what)}</td>
          <td class="text cut ${span.failed ? "bad" : ""}">${what === "span.ends" ? span.note : ""}</td></tr>`)}</tbody>
    </table>`;
};
