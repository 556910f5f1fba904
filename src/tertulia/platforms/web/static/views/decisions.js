// Why did it (not) answer? Every message of a place, and what each agent decided about it.
import { address, clock, day, home, html, isToday, named, number, placeName, short, t, textOf, to, useApi, useSignal, useState, ask, useEffect } from "../core.js";
import { Card, Chip, Empty, Heading, Loaded, Name, Tabs, messageLink } from "../parts.js";
import { kindOf } from "./place.js";

const ANSWERED = ["answered", "joined"];
const FILTERS = {
  all: () => true,
  answered: (one) => ANSWERED.includes(one.reason),
  passed: (one) => one.reason === "not addressed",
  limited: (one) => !ANSWERED.includes(one.reason) && one.reason !== "not addressed",
};

export function DecisionsPage({ place }) {
  const shown = useApi(`/places/${place}/decisions`);
  return html`<${Loaded} of=${shown}>${(page) => html`<${Decisions} key=${place} place=${place} first=${page} />`}<//>`;
}

function Decisions({ place, first }) {
  const { query } = useSignal(address);
  const [older, setOlder] = useState([]);
  useEffect(() => setOlder([]), [place]);
  const pages = [...older, first];
  const before = pages[0].before;
  const messages = pages.flatMap((page) => page.messages);
  const agentName = useSignal(home)?.agent || t("decisions.only_agent");
  const only = query.only in FILTERS ? query.only : "all";
  const agents = [...new Set(messages.flatMap((one) => one.decisions.map((decision) => decision.agent || "")))];
  const found = messages.filter((one) => only === "all" || one.decisions.some(FILTERS[only]));
  const counts = agents.map((agent) => countsOf(messages, agent));
  const more = async () => setOlder([await ask(`/places/${place}/decisions?before=${before}`), ...older]);
  return html`
    <div class="page">
      <${Heading} title=${t("decisions.title", { place: placeName(first.row.place) })} note=${t("decisions.note")} />
      <div class="stats">
        ${counts.map((one) => html`
          <div class="stat" key=${one.agent}><h2>${one.agent || agentName}</h2>
            <div class="bar plain" role="img" aria-label=${t("decisions.of", { answered: one.answered, all: one.all })}>
              <i class="ok" style=${{ width: `${(100 * one.answered) / one.all}%` }} /><i class="warn" style=${{ width: `${(100 * one.limited) / one.all}%` }} /><i class="rest" style=${{ width: `${(100 * one.passed) / one.all}%` }} />
            </div>
            <p><b>${number(one.answered)}</b> ${t("decisions.answered")}, <b>${number(one.limited)}</b> ${t("decisions.limited")}, <b>${number(one.passed)}</b> ${t("decisions.passed")}</p>
          </div>`)}
      </div>
      <${Card} title=${t("decisions.why")} count=${t("decisions.count", { n: found.length })} side=${html`
        <${Tabs} name="only" initial="all" current=${only} label=${t("decisions.why")} of=${Object.keys(FILTERS).map((name) => [name, t(`decisions.tab.${name}`)])} />`}>
        ${found.length ? html`
          <table class="rows decisions">
            <thead><tr><th class="when">${t("places.when")}</th><th>${t("who")}</th><th>${t("message")}</th><th>${t("decisions.decided")}</th><th>${t("decisions.words")}</th></tr></thead>
            <tbody>${[...found].reverse().map((one) => html`
              <tr class="row" key=${one.number}>
                <td class="n muted when">${one.message.sent_at ? `${isToday(one.message.sent_at) ? "" : `${day(one.message.sent_at)}, `}${clock(one.message.sent_at)}` : ""}</td>
                <td class="cut who"><${Name} author=${one.message.author} /></td>
                <td class="text cut main" dir="auto"><a class="whole" href=${messageLink(place, { id: one.message.id, number: one.number })}>${textOf(one.message.parts) || t("message.deleted")}</a></td>
                <td class="state"><span class="chips">${one.decisions.map((decision, at) => html`<${Chip} key=${at} kind=${ANSWERED.includes(decision.reason) ? "ok" : kindOf(decision)}>${named("reason", decision.reason)}<//>${decision.address && html`<span class="muted">${named("address", decision.address)}</span>`}`)}</span></td>
                <td class="note words-of">${one.decisions.length ? one.decisions.map((decision, at) => html`<span key=${at}>${agents.length > 1 && decision.agent ? `${decision.agent}: ` : ""}${inWords(decision)}${decision.run_id && html` <a href=${to(`/run/${decision.run_id}`)}>${t("run.named", { id: short(decision.run_id) })}</a>`} </span>`) : one.words.join(" ")}</td>
              </tr>`)}</tbody>
          </table>` : html`<${Empty}>${t("decisions.none")}<//>`}
        ${before !== null && html`<p class="more"><button type="button" onClick=${more}>${t("more")}</button></p>`}
      <//>
    </div>`;
}

/** Why it was decided so, as a sentence. */
function inWords({ reason, address: spoken, edited }) {
  const how = spoken ? named("spoke", spoken) + (edited ? t("spoke.edited") : "") : "";
  return ANSWERED.includes(reason) && how ? `${how}.` : `${[named("words", reason), how].filter(Boolean).join("; ")}.`;
}

function countsOf(messages, agent) {
  const decisions = messages.flatMap((one) => one.decisions.filter((decision) => (decision.agent || "") === agent));
  const count = (name) => decisions.filter(FILTERS[name]).length;
  return { agent, all: decisions.length || 1, answered: count("answered"), passed: count("passed"), limited: count("limited") };
}
