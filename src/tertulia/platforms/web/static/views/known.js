// What did it know? What was in the prompt of a message and shares words with each of its sentences.
import { address, clock, html, number, said, short, t, textOf, to, useApi, useSignal, when } from "../core.js";
import { Act, Avatar, Card, Chip, Empty, Icon, Loaded, Marked, Name, Tabs } from "../parts.js";

const GROUPS = ["fact", "message", "tool", "episode"];
const ICONS = { fact: "memory", message: "places", tool: "tool", episode: "runs" };

export function KnownPage({ place, message }) {
  const shown = useApi(`/places/${place}/messages/${encodeURIComponent(message)}/known`);
  return html`<${Loaded} of=${shown}>${(known) => html`<${KnownView} place=${place} known=${known} reload=${shown.reload} />`}<//>`;
}

function KnownView({ place, known, reload }) {
  const { path, query } = useSignal(address);
  const { sentences, evidence } = known;
  const at = Math.max(0, Math.min(sentences.length - 1, Number(query.sentence || 1) - 1));
  const only = query.show === "shared" ? "shared" : "all";
  const all = evidence[at] || [];
  const found = only === "shared" ? all.filter((one) => one.shared.length) : all;
  const { author, sent_at: sent, reply_to: asked } = known.message;
  return html`
    <div class="page">
      <h1 class="hidden">${t("known.title")}</h1>
      <div class="known">
        <div>
          <section class="card pad">
            ${asked && html`
              <article class="message flat"><${Avatar} author=${asked.author || {}} />
                <div class="body"><p class="meta"><${Name} author=${asked.author || {}} /></p><p class="words" dir="auto">${asked.excerpt || textOf(asked.parts) || t("message.media")}</p></div></article>`}
            <article class="message flat">
              <${Avatar} author=${{ ...author, persona: author.persona || author.name }} />
              <div class="body">
                <p class="meta"><${Name} author=${author} /><${Chip}>${t("agent")}<//>${sent && html`<time>${clock(sent)}</time>`}</p>
                <p class="sentences" dir="auto">${sentences.length ? sentences.map((one, index) => html`
                  <a key=${index} href=${to(path, { ...query, sentence: index + 1 })} aria-current=${index === at ? "true" : undefined}>${one}</a> `) : textOf(known.message.parts)}</p>
                ${known.run_id && html`<p class="note"><a href=${to(`/run/${known.run_id}`)}>${t("run.named", { id: short(known.run_id) })}</a>, ${t("known.window", { n: known.window })}</p>`}
              </div>
            </article>
          </section>
          <${Card} title=${t("known.how")}><p class="pad note">${t("known.explained")}</p><//>
        </div>
        <${Card} title=${t("known.question")} side=${html`<${Tabs} name="show" initial="all" current=${only} label=${t("known.question")} of=${[["all", t("known.all")], ["shared", t("known.shared")]]} />`}>
          ${found.length ? GROUPS.map((kind) => html`<${Group} key=${kind} kind=${kind} rows=${found.filter((one) => one.kind === kind)} place=${place} reload=${reload} />`)
            : html`<${Empty}>${known.why_nothing || t(all.length ? "known.none_shared" : "known.nothing", { n: known.window })}<//>`}
        <//>
      </div>
    </div>`;
}

function Group({ kind, rows, place, reload }) {
  if (!rows.length) return null;
  return html`
    <h3 class="group">${t(`known.${kind}`)}<span class="count">${number(rows.length)}</span></h3>
    ${rows.map((one) => html`
      <article class="evidence" key=${one.id}>
        <${Icon} name=${ICONS[kind]} />
        <div class="grow"><p dir="auto" class=${kind === "tool" ? "mono" : ""}><${Marked} text=${one.text || t("recalled.gone")} words=${one.shared} /></p>
          ${one.source && html`<p class="note" dir="auto">${one.source.author.name}${one.source.sent_at ? `, ${when(one.source.sent_at)}` : ""}: “${one.source.text}”</p>`}
          ${one.why && html`<p class="note">${said(one.why)}</p>`}</div>
        ${one.score !== null && html`<span class="n"><b>${one.score.toFixed(2)}</b> <span class="muted">${t(kind === "fact" ? "known.sure" : "known.score")}</span></span>`}
        <div class="buttons">
          ${one.message_id && html`<a class="button" href=${to(`/p/${one.place_key || place}`, { at: one.message_id })}>${t("open")}</a>`}
          ${kind === "fact" && html`<${Forget} id=${one.id} text=${one.text} after=${reload} />`}
          ${kind === "message" && html`<${Act} label=${t("hide")} order=${{ kind: "hide message", subject: one.message_id || one.id, place: one.place_key || place }} after=${reload} question=${t("hide.message")} />`}
          ${kind === "episode" && html`<${Act} label=${t("hide")} order=${{ kind: "hide episode", subject: one.id }} after=${reload} question=${t("hide.episode")} />`}
        </div>
      </article>`)}`;
}

/** Forget a fact: the plan is shown before. */
export const Forget = ({ id, text, after }) => html`
  <${Act} label=${t("forget")} kind="bad" order=${{ kind: "forget fact", subject: id }} plan=${`/facts/${encodeURIComponent(id)}/plan`}
    question=${t("forget.fact", { fact: text })} confirm=${t("forget.yes")} after=${after} />`;
