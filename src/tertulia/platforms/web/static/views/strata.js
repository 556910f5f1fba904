// Strata: the requests of a place under each other, to scale. Pale is cached; a red line is where the start changed.
import { address, clock, html, longDay, money, number, placeName, said, setQuery, share, t, to, useApi, useSignal, useState } from "../core.js";
import { Card, Empty, Heading, LayerBar, Legend, Loaded, Whose, partsOf, layerName, totalOf } from "../parts.js";
import { diffArrays } from "../vendor/jsdiff/diff/array.js";

export function StrataPage({ place }) {
  const { query } = useSignal(address);
  const shown = useApi(`/places/${place}/strata${query.day ? `?day=${encodeURIComponent(query.day)}` : ""}`);
  return html`<${Loaded} of=${shown}>${(strata) => html`<${Strata} place=${place} shown=${strata} query=${query} />`}<//>`;
}

const LAYERS = ["tools", "static", "history", "dynamic", "buffered", "trigger", "run"]; // as the legend has them

const idOf = (strip) => `${strip.run_id}.${strip.step}`;

function choose(query, id) {
  const chosen = [query.a, query.b].filter(Boolean);
  const next = chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id].slice(-2);
  setQuery({ a: next[0] || "", b: next[1] || "", layer: "" });
}

function Strata({ place, shown, query }) {
  const { strips, spent, row } = shown;
  const lengthOf = scaleOf(strips);
  const widest = Math.max(...strips.map(lengthOf), 1);
  const order = new Map(strips.map((strip, at) => [idOf(strip), at]));
  const [a, b] = [query.a, query.b].filter((id) => order.has(id)).sort((x, y) => order.get(x) - order.get(y));
  const layers = [...new Set(strips.flatMap((strip) => partsOf(strip.layers, strip.size).map((part) => part.name)))].sort((x, y) => LAYERS.indexOf(x) - LAYERS.indexOf(y));
  const [all, showAll] = useState(false);
  const shownStrips = a && b && !all ? around(strips, [order.get(a), order.get(b)]) : strips;
  const saved = spent.without_cache ? 1 - spent.money / spent.without_cache : 0;
  const most = Math.max(spent.money, spent.without_cache, 1e-9);
  const title = t(shown.day === new Date().toISOString().slice(0, 10) ? "strata.today" : "strata.on", { place: placeName(row.place), day: longDay(shown.day) });
  return html`
    <div class="page">
      <${Heading} title=${title} note=${`${t("strata.under", { n: strips.length })} ${t("strata.how")}`}
        side=${html`<select aria-label=${t("strata.day")} value=${shown.day} onChange=${(event) => setQuery({ day: event.target.value, a: "", b: "" })}>
          ${[...new Set([...shown.days, shown.day])].sort().reverse().map((one) => html`<option key=${one} value=${one} selected=${one === shown.day}>${one}</option>`)}</select>
          ${(query.a || query.b) && html`<button type="button" class=${a && b ? "solid" : ""} onClick=${() => setQuery({ a: "", b: "" })}>${a && b ? t("strata.comparing") : t("strata.one_more")}</button>`}`} />
      <section class="card summary">
        <div class="saved">
          <p><span>${t("strata.with")}</span><i class="accent" style=${{ width: `${(100 * spent.money) / most}%` }} /><b>${money(spent.money)}</b></p>
          <p><span>${t("strata.without")}</span><i style=${{ width: `${(100 * spent.without_cache) / most}%` }} /><span>${money(spent.without_cache)}</span></p>
        </div>
        <div><b class="big">${t("strata.less", { share: share(saved, 1) })}</b><p class="note">${t("strata.cached", { share: share(spent.cached, spent.input), tokens: spent.input })}</p></div>
        <div><b class="big ${shown.breaks ? "bad" : "ok"}">${t("strata.breaks", { n: shown.breaks })}</b><p class="note">${t(shown.breaks ? "strata.changed" : "strata.kept")}</p></div>
        <${Legend} layers=${layers} />
      </section>
      <${Card}>
        ${strips.length ? html`
          <div class="strata" role="table" aria-label=${title}>
            <div class="strip head" role="row"><span role="columnheader" class="pick"><span class="hidden">${t("strata.choose")}</span></span><span role="columnheader">${t("request")}</span><span role="columnheader">${t("strata.layers")}</span>
              <span role="columnheader" class="n">${t("strata.tokens")}</span><span role="columnheader" class="n">${t("places.cached")}</span><span role="columnheader" class="n">${t("cost")}</span></div>
            ${shownStrips.map((strip) => typeof strip === "number" ? html`<div key=${`and ${strip}`} class="folded" role="row"><span role="cell"><button type="button" class="plain" onClick=${() => showAll(true)}>${t("strata.folded", { n: strip })}</button></span></div>`
              : html`<${Strip} key=${idOf(strip)} strip=${strip} length=${lengthOf(strip)} widest=${widest} chosen=${[query.a, query.b].includes(idOf(strip))} onChoose=${() => choose(query, idOf(strip))} />`)}
          </div>
          ${strips.length === 1 && html`<${Empty}>${t("strata.one")}<//>`}` : html`<${Empty}>${t("strata.none")}<//>`}
      <//>
      ${a && b && html`<${Compared} key=${a + b} place=${place} a=${a} b=${b} />`}
    </div>`;
}

const NEAR = 2; // rows beside each of the two that are compared

/** The rows around those that are compared; between them how many are folded. */
function around(strips, chosen) {
  const found = [];
  let folded = 0;
  strips.forEach((strip, at) => {
    const isNear = chosen.some((one) => Math.abs(one - at) <= NEAR);
    if (isNear && folded) found.push(folded);
    folded = isNear ? 0 : folded + 1;
    if (isNear) found.push(strip);
  });
  return folded ? [...found, folded] : found;
}

/** The tokens of strips: as the service counted them, else as we estimate them, by how much it counted of the others. */
function scaleOf(strips) {
  const counted = strips.filter((strip) => strip.spent.input && totalOf(strip.size));
  const sum = (of) => counted.reduce((all, strip) => all + of(strip), 0);
  const ratio = counted.length ? sum((strip) => strip.spent.input) / sum((strip) => totalOf(strip.size)) : 1;
  return (strip) => strip.spent.input || ratio * totalOf(strip.size);
}

function Strip({ strip, length, widest, chosen, onChoose }) {
  const { spent, size, message } = strip;
  const isBreak = strip.broke && strip.status === "answered";
  const isModel = size.broken_by === "model";
  const first = !strip.after.length && strip.step === 0;
  const left = (100 * breakAt(strip) * length) / widest; // percent of the lane
  const words = first && message ? message.text || t("message.media") : strip.after.length ? t("strata.after", { tools: strip.after.join(", ") }) : t("strata.again");
  const pale = spent.input ? spent.cached : 0;
  return html`
    <div role="row" class="strip ${chosen ? "chosen" : ""} ${isBreak ? "broke" : ""} ${isModel ? "model" : ""}" data-row>
      <span role="cell" class="pick"><input type="checkbox" checked=${chosen} onChange=${onChoose} aria-label=${t("strata.pick", { when: clock(strip.at), words })} /></span>
      <span role="cell" class="which cut"><a href=${to(`/run/${strip.run_id}`, { step: strip.step + 1 })}>
        ${first ? html`<span class="n">${clock(strip.at)}</span> <span class="muted">${message?.author.name}<${Whose} agent=${strip.agent} lead=" → " /></span> <bdi>${words}</bdi>` : html`<span class="n step">${strip.step + 1}</span> <span class="muted">${words}</span>`}</a></span>
      <span role="cell" class="lane">
        ${strip.status === "answered" ? html`<${LayerBar} layers=${strip.layers} size=${size} counted=${spent.input} cached=${pale} whole=${widest} />`
          : html`<i class="dashed" style=${{ width: `${(100 * length) / widest}%` }} />`}
        ${isBreak && html`<span class="break ${isModel ? "warn" : "bad"} ${left > 50 ? "before" : ""}" style=${left > 50 ? { width: `${left}%` } : { marginLeft: `${left}%` }}>${isModel ? said(size.cause) : t("strata.broke", { layer: layerName(size.broken_by), cause: said(size.cause) })}</span>`}
      </span>
      ${strip.status === "answered" ? html`<span role="cell" class="n">${number(length)}</span>
        <span role="cell" class="n ${isBreak && !isModel ? "bad strong" : "muted"}">${spent.input ? share(spent.cached, spent.input) : "?"}</span><span role="cell" class="n">${spent.unpriced ? "?" : money(spent.money, 5)}</span>`
        : html`<span role="cell" class="n muted across" aria-colspan="3">${t(`strata.${strip.status.replace(" ", "_")}`)}</span>`}
    </div>`;
}

/** Where the start of a request broke, as a share of its length: after what it repeats. */
const breakAt = ({ size }) => Math.min(0.98, (size.stable || 0) / (totalOf(size) || 1));

function Compared({ place, a, b }) {
  const shown = useApi(`/places/${place}/difference?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
  return html`<${Loaded} of=${shown}>${(difference) => html`<${Difference} shown=${difference} />`}<//>`;
}

function Difference({ shown }) {
  const broken = shown.b.size.broken_by;
  const { broke } = shown.b;
  const changed = shown.layers.filter((layer) => layer.before !== layer.after);
  const { query } = useSignal(address);
  const name = shown.layers.some((one) => one.name === query.layer) ? query.layer : (changed.find((one) => one.name === broken) || changed[0] || shown.layers[0])?.name;
  const layer = shown.layers.find((one) => one.name === name);
  return html`
    <section class="card difference" id="difference">
      <header><h2>${t("difference")}<span class="count">${clock(shown.a.at)}, ${t("step", { n: shown.a.step + 1 })} → ${clock(shown.b.at)}, ${t("step", { n: shown.b.step + 1 })}</span></h2></header>
      <div class="two">
        <ol class="layers">${shown.layers.map((one) => html`
          <li key=${one.name} class=${one.name === name ? "chosen" : ""}><button type="button" class="plain" aria-current=${one.name === name ? "true" : undefined} onClick=${() => setQuery({ layer: one.name })}>
            <i class="b-${one.name}" /><span class="grow">${layerName(one.name)}</span>
            <span class="n muted">${number(one.tokens[0])} → ${number(one.tokens[1])}</span>
            <span class="n ${one.before === one.after ? "muted" : broke && one.name === broken ? "bad strong" : ""}">${t(one.before === one.after ? "difference.same" : broke && one.name === broken ? "difference.broke" : "difference.changed")}</span>
          </button></li>`)}</ol>
        <div class="text-pane" tabindex="0" role="region" aria-label=${t("difference")}>${layer && html`<${Words} layer=${layer} />`}
          ${broke && html`<p class="note">${t("difference.paid", { cause: said(shown.b.size.cause), tokens: shown.b.spent.input - shown.b.spent.cached, money: money(shown.b.spent.money, 5) })}</p>`}</div>
      </div>
    </section>`;
}

const SHOWN = 160; // characters around what changed
const MOST = 200_000; // characters that are compared word by word

/** What differs between two texts, in pieces of words; nothing where that takes too long. */
export const piecesOf = (before, after) => diffArrays(wordsOf(before.slice(0, MOST)), wordsOf(after.slice(0, MOST)), { timeout: 3000 });

function Words({ layer }) {
  if (layer.before === layer.after) return html`<p class="muted">${t("difference.equal")}</p>`;
  const { after } = layer;
  const found = piecesOf(layer.before, after);
  const pieces = found && readable(found);
  if (!found) return html`<p class="note">${t("difference.too_long")}</p><pre class="said">${after}</pre>`;
  return html`<pre class="said diff" dir="auto">${pieces.map((piece, at) => piece.added ? html`<ins key=${at}>${piece.value.join("")}</ins>`
    : piece.removed ? html`<del key=${at}>${piece.value.join("")}</del>` : html`<span key=${at}>${shortened(piece.value.join(""), at === 0, at === pieces.length - 1)}</span>`)}</pre>`;
}

/** Neighbouring changes as one: what was there, then what is there now, not word by word. */
function readable(pieces) {
  const groups = [];
  for (const piece of pieces) {
    const last = groups[groups.length - 1];
    const isChange = piece.added || piece.removed;
    if (isChange && Array.isArray(last)) last.push(piece);
    else if (isChange) groups.push([piece]);
    else if (Array.isArray(last) && !/[\p{L}\p{N}\n]/u.test(piece.value.join(""))) last.push(piece);
    else groups.push(piece);
  }
  return groups.flatMap((group) => {
    if (!Array.isArray(group)) return [group];
    const tail = group.findLastIndex((one) => one.added || one.removed) + 1;
    const [changes, rest] = [group.slice(0, tail), group.slice(tail)];
    if (!changes.some((one) => one.added) || !changes.some((one) => one.removed)) return group;
    const side = (other) => changes.filter((one) => !one[other]).flatMap((one) => one.value);
    return [{ removed: true, value: side("added") }, { added: true, value: side("removed") }, ...rest];
  });
}

/** Words with what stands between them: all of it is compared. */
const wordsOf = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) || [];

export function shortened(text, isFirst, isLast) {
  if (text.length <= 2 * SHOWN) return text;
  return `${isFirst ? "" : text.slice(0, SHOWN)} … ${isLast ? "" : text.slice(-SHOWN)}`;
}
