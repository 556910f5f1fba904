// Why did it (not) answer? Every message of a place, and what each agent decided about it.
import { address, agentOf, agents as met, clock, day, home, html, isToday, named, number, placeName, short, t, textOf, to, useApi, useSignal, useState, ask, useEffect } from "../core.js";
import { Avatar, Card, Chip, Empty, Heading, Loaded, Name, Tabs, messageLink, stayWords } from "../parts.js";
import { kindOf } from "./place.js";

const ANSWERED = ["answered", "joined"];
const PASSED = ["not addressed", "our own"]; // what an agent wrote, and meant for no other one
const FILTERS = {
  all: () => true,
  answered: (one) => ANSWERED.includes(one.reason),
  passed: (one) => PASSED.includes(one.reason),
  limited: (one) => !ANSWERED.includes(one.reason) && !PASSED.includes(one.reason),
};

export function DecisionsPage({ place }) {
  const shown = useApi(`/places/${place}/decisions`);
  return html`<${Loaded} of=${shown}>${(page) => html`<${Decisions} key=${place} place=${place} first=${page} />`}<//>`;
}

function Decisions({ place, first }) {
  const { query } = useSignal(address);
  useSignal(met);
  const [older, setOlder] = useState([]);
  useEffect(() => setOlder([]), [place]);
  const pages = [...older, first];
  const before = pages[0].before;
  const messages = pages.flatMap((page) => page.messages);
  const agentName = useSignal(home)?.agent || t("decisions.only_agent");
  const only = query.only in FILTERS ? query.only : "all";
  const agents = first.agents.length ? columnsOf(first.agents, messages) : [""];
  const several = agents.length > 1;
  const found = messages.filter((one) => only === "all" || one.decisions.some(FILTERS[only]));
  const counts = agents.map((agent) => countsOf(messages, agent));
  const more = async () => setOlder([await ask(`/places/${place}/decisions?before=${before}`), ...older]);
  return html`
    <div class="page">
      <${Heading} title=${t("decisions.title", { place: placeName(first.row.place) })} note=${t("decisions.note")} />
      <div class="stats">
        ${counts.map((one) => html`
          <div class="stat" key=${one.agent}><h2>${several && html`<${Avatar} author=${{ name: one.agent, persona: one.agent }} /> `}<bdi>${one.agent || agentName}</bdi></h2>
            ${several && html`<p class="note cut">${stayWords(first.agents.find((row) => row.name === one.agent))}</p>`}
            <div class="bar plain" role="img" aria-label=${t("decisions.of", { answered: one.answered, all: one.all })}>
              <i class="ok" style=${{ width: `${(100 * one.answered) / one.all}%` }} /><i class="warn" style=${{ width: `${(100 * one.limited) / one.all}%` }} /><i class="rest" style=${{ width: `${(100 * one.passed) / one.all}%` }} />
            </div>
            <p><b>${number(one.answered)}</b> ${t("decisions.answered")}, <b>${number(one.limited)}</b> ${t("decisions.limited")}, <b>${number(one.passed)}</b> ${t("decisions.passed")}</p>
          </div>`)}
      </div>
      <${Card} title=${t("decisions.why")} count=${t("decisions.count", { n: found.length })} side=${html`
        <${Tabs} name="only" initial="all" current=${only} label=${t("decisions.why")} of=${Object.keys(FILTERS).map((name) => [name, t(`decisions.tab.${name}`)])} />`}>
        ${found.length ? html`
          <table class="rows decisions ${several ? "several" : ""}">
            <thead><tr><th class="when">${t("places.when")}</th><th>${t("who")}</th><th>${t("message")}</th>${several ? agents.map((name) => html`<th key=${name} class="cut"><bdi>${name}</bdi></th>`) : html`<th>${t("decisions.decided")}</th><th>${t("decisions.words")}</th>`}</tr></thead>
            <tbody>${[...found].reverse().map((one) => html`
              <tr class="row" key=${one.number}>
                <td class="n muted when">${one.message.sent_at ? `${isToday(one.message.sent_at) ? "" : `${day(one.message.sent_at)}, `}${clock(one.message.sent_at)}` : ""}</td>
                <td class="cut who"><${Name} author=${one.message.author} /></td>
                <td class="text cut main" dir="auto"><a class="whole" href=${messageLink(place, { id: one.message.id, number: one.number })}>${textOf(one.message.parts) || t("message.deleted")}</a></td>
                ${several ? agents.map((name) => html`<${Cell} key=${name} one=${one} agent=${name} />`) : html`
                <td class="state"><span class="chips">${one.decisions.map((decision, at) => html`<${Chip} key=${at} kind=${ANSWERED.includes(decision.reason) ? "ok" : kindOf(decision)}>${named("reason", decision.reason)}<//>${decision.address && html`<span class="muted">${named("address", decision.address)}</span>`}`)}</span></td>
                <td class="note words-of">${one.decisions.length ? one.decisions.map((decision, at) => html`<span key=${at}>${inWords(decision)}${decision.run_id && html` <a href=${to(`/run/${decision.run_id}`)}>${t("run.named", { id: short(decision.run_id) })}</a>`} </span>`) : one.words.join(" ")}</td>`}
              </tr>`)}</tbody>
          </table>` : html`<${Empty}>${t("decisions.none")}<//>`}
        ${before !== null && html`<p class="more"><button type="button" onClick=${more}>${t("more")}</button></p>`}
      <//>
    </div>`;
}

/** The agents of a place, and those that are still named in its messages. */
const columnsOf = (there, messages) => [...new Set([
  ...there.map((one) => one.name), ...messages.flatMap((one) => one.decisions.map((decision) => decision.agent)).filter(Boolean),
])];

const wroteIt = ({ message }, agent) => (message.agent ?? null) !== null && agentOf(message.agent) === agent;

/** What was decided about a message for an agent: what is decided for nobody in particular holds for each. */
const decidedFor = ({ decisions }, agent) =>
  decisions.find((decision) => decision.agent === agent)
  || decisions.find((decision) => !decision.agent && (!ANSWERED.includes(decision.reason) || agentOf("") === agent));

function Cell({ one, agent }) {
  const decision = decidedFor(one, agent);
  const passed = !decision || PASSED.includes(decision.reason);
  const words = wroteIt(one, agent) ? t("decisions.wrote") : decision || one.message.agent != null || one.decisions.length ? named("reason", "not addressed") : one.words.join(" ");
  const chip = !passed && html`<${Chip} kind=${ANSWERED.includes(decision.reason) ? "ok" : kindOf(decision)}>${named("reason", decision.reason)}<//>`;
  return html`
    <td class="cell ${passed ? "passed" : ""}" data-of=${agent}>${passed ? html`<span class="muted">${words}</span>` : html`
      <span class="chips" title=${inWords(decision)}>${decision.run_id ? html`<a href=${to(`/run/${decision.run_id}`)} aria-label=${`${named("reason", decision.reason)}, ${t("run.named", { id: short(decision.run_id) })}`}>${chip}</a>` : chip}
        ${decision.address && html`<span class="muted">${named("address", decision.address)}</span>`}</span>`}</td>`;
}

/** Why it was decided so, as a sentence. */
function inWords({ reason, address: spoken, edited }) {
  const how = spoken ? named("spoke", spoken) + (edited ? t("spoke.edited") : "") : "";
  return ANSWERED.includes(reason) && how ? `${how}.` : `${[named("words", reason), how].filter(Boolean).join("; ")}.`;
}

function countsOf(messages, agent) {
  const decisions = agent ? messages.filter((one) => !wroteIt(one, agent) && one.decisions.length).map((one) => decidedFor(one, agent) || { reason: "not addressed" })
    : messages.flatMap((one) => one.decisions);
  const count = (name) => decisions.filter(FILTERS[name]).length;
  return { agent, all: decisions.length || 1, answered: count("answered"), passed: count("passed"), limited: count("limited") };
}
