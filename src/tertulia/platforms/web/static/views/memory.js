// What is known of people and places: facts with their validity and sources on a time line, episodes; export, forget.
import { address, api, clock, day, go, html, ms, named, number, placeName, session, setQuery, short, t, title, to, useApi, useCrumbs, useSignal, when } from "../core.js";
import { Act, Avatar, Card, Chip, Empty, Heading, Loaded, messageLink, useFilter } from "../parts.js";
import { Forget } from "./known.js";

export function PeoplePage() {
  const shown = useApi("/people");
  return html`<${Loaded} of=${shown}>${(rows) => html`<${People} rows=${rows} />`}<//>`;
}

function People({ rows }) {
  const [found, field] = useFilter(rows, (row) => `${row.person.name} ${row.person.id} ${row.person.platform}`);
  const known = rows.reduce((sum, row) => sum + row.facts, 0);
  return html`
    <div class="page">
      <${Heading} title=${t("nav.memory")} note=${t("people.note", { n: rows.length, facts: known })} />
      <${Card} title=${t("people")} count=${rows.length} side=${field}><${PeopleLines} rows=${found} /><//>
    </div>`;
}

/** Where somebody is who: a platform of two bots has the number of one in its name. */
const accountOf = ({ platform, id }) => `${title(platform.replace(/-\d+$/, ""))} ${id}`;

const PeopleLines = ({ rows }) => rows.length ? html`
  <table class="rows people">
    <thead><tr><th>${t("who")}</th><th class="n">${t("nav.messages")}</th><th class="n">${t("memory.facts")}</th><th class="when">${t("people.last")}</th><th class="state">${t("places.state")}</th></tr></thead>
    <tbody>${rows.map((row) => html`
      <tr class="row" key=${row.key}>
        <td class="main person"><${Avatar} author=${row.person} /><span><a class="whole" href=${to(`/people/${row.key}`)}><bdi>${row.person.name || row.person.id}</bdi></a><small>${accountOf(row.person)}</small></span></td>
        <td class="n wide">${number(row.messages)}</td><td class="n" data-of=${t("memory.facts")}>${number(row.facts)}</td><td class="n muted when">${row.last_at ? when(row.last_at) : ""}</td>
        <td class="state">${row.blocked ? html`<${Chip} kind="bad">${t("people.blocked")}<//>` : ""}</td>
      </tr>`)}</tbody>
  </table>` : html`<${Empty}>${t("people.none")}<//>`;

export function PersonPage({ person }) {
  const shown = useApi(`/people/${person}`);
  return html`<${Loaded} of=${shown}>${(found) => html`<${Person} key=${person} shown=${found} reload=${shown.reload} />`}<//>`;
}

export const isCurrent = ({ fact }) => !fact.superseded_by && !(fact.held_until && ms(fact.held_until) <= Date.now());
const since = (fact) => fact.held_from || fact.learned_at;

function Person({ shown, reload }) {
  const { row, facts, episodes } = shown;
  const { query } = useSignal(address);
  const name = row.person.name || row.person.id;
  const holds = facts.filter(isCurrent);
  const chosen = facts.find((one) => one.fact.id === query.fact) || holds[0] || facts[0];
  useCrumbs([[name, `/people/${row.key}`]]);
  const also = shown.names.filter((one) => one !== name);
  return html`
    <div class="page">
      <${Heading} avatar=${html`<${Avatar} large author=${row.person} />`} title=${name}
        note=${[accountOf(row.person), also.length ? t("person.also", { names: also.join(", ") }) : "", t("person.holds", { n: holds.length }), facts.length > holds.length ? t("person.no_longer", { n: facts.length - holds.length }) : "", row.blocked ? t("people.blocked") : ""].filter(Boolean).join(". ")}
        side=${html`${session.peek()?.can_write && html`<a class="button" href=${api(`/people/${row.key}/export`)} download>${t("person.export")}</a>`}
          <${Act} label=${t("person.forget", { name })} kind="bad" order=${{ kind: "forget person", subject: row.key }} plan=${`/people/${row.key}/plan`} question=${t("forget.person", { name })} confirm=${t("forget.person_yes", { name })} after=${(how) => (how === "done" ? go(to("/people"), { replace: true }) : reload())} />`} />
      <div class="columns">
        <div>
          <${Lanes} facts=${facts} episodes=${episodes} chosen=${chosen?.fact.id} name=${name} />
          ${shown.summaries.length > 0 && html`<${Card} title=${t("memory.summaries")}>${shown.summaries.map((one, at) => html`<article class="line flat" key=${at}><p dir="auto">${one.text}</p><p class="note">${placeName(one.place)}, ${when(one.made_at)}</p></article>`)}<//>`}
          <${Episodes} rows=${episodes} reload=${reload} />
        </div>
        <aside aria-label=${t("memory.fact")}>
          ${chosen ? html`<${FactCard} key=${chosen.fact.id} shown=${chosen} reload=${reload} />` : html`<${Card} title=${t("memory.facts")}><${Empty}>${t("memory.none", { name })}<//><//>`}
          <${Card} title=${t("nav.places")} count=${shown.places.length}>${shown.places.map((place) => html`<article class="line" key=${place.key}><p class="split"><a href=${to(`/p/${place.key}`)}><bdi>${placeName(place.place)}</bdi></a><a class="note" href=${to(`/p/${place.key}/memory`)}>${t("place.memory")}</a></p></article>`)}<//>
        </aside>
      </div>
    </div>`;
}

const FULL = 30 * 60_000; // the shortest span of the axis

/** Facts as bars from when they hold until they do not, a lane for each topic; episodes below. */
function Lanes({ facts, episodes, chosen, name }) {
  if (!facts.length && !episodes.length) return html`<${Card} title=${t("memory.lanes")}><${Empty}>${t("memory.none", { name })}<//><//>`;
  const now = Date.now();
  const starts = [...facts.map((one) => ms(since(one.fact))), ...episodes.filter((one) => one.started_at).map((one) => ms(one.started_at))];
  const start = Math.min(...starts, now - FULL);
  const width = (now - start) * 1.04;
  const at = (moment) => (100 * (moment - start)) / width;
  const lanes = new Map();
  const several = new Set(facts.map((one) => one.fact.subject.id)).size > 1;
  for (const one of facts) {
    const topic = one.fact.key ? named("key", one.fact.key.split(":")[0]) : t("memory.other");
    const key = several ? `${one.fact.subject.name}: ${topic}` : topic;
    lanes.set(key, [...(lanes.get(key) || []), one]);
  }
  return html`
    <${Card} title=${t("memory.lanes")} side=${html`<ul class="legend"><li><i class="k-holds" />${t("memory.holds")}</li><li><i class="k-ended" />${t("memory.ended")}</li><li><i class="b-buffered" />${t("memory.episode")}</li></ul>`}>
      <div class="lanes">
        <div class="lane-row axis" aria-hidden="true"><span /><div class="lane">${days(start, now).filter((one, index, all) => !index || at(one.at) - at(all[index - 1].at) > (isNarrow() ? 20 : 7)).map((one) => html`<span key=${one.at} style=${{ left: `${at(one.at)}%` }}>${one.words}</span>`)}<span class="now" style=${{ left: `${at(now)}%` }}>${t("ago.now")}</span></div></div>
        ${[...lanes].map(([key, rows]) => html`
          <div class="lane-row" key=${key}><span class="label">${key}</span><div class="lane">
            ${rows.map((one) => { const { fact } = one; const [from, until] = [at(ms(since(fact))), at(ended(fact, facts) ?? now)]; const late = from > 62; return html`
              <button key=${fact.id} type="button" class="fact ${isCurrent(one) ? "holds" : "ended"} ${fact.id === chosen ? "chosen" : ""} ${late ? "late" : ""} ${rows.length > 1 ? "over" : ""}" aria-pressed=${fact.id === chosen ? "true" : "false"}
                style=${{ left: `${from}%`, width: `${Math.max(1.2, until - from)}%` }} onClick=${() => setQuery({ fact: fact.id })} title=${fact.text}><span dir="auto">${fact.text}</span></button>`; })}
            <i class="now" style=${{ left: `${at(now)}%` }} /></div></div>`)}
        ${episodes.length > 0 && html`<div class="lane-row"><span class="label">${t("memory.episodes")}</span><div class="lane low" role="img" aria-label=${t("memory.n_episodes", { n: episodes.length })}>
          ${episodes.filter((one) => one.started_at).map((one) => html`<i key=${one.id} class="episode" style=${{ left: `${at(ms(one.started_at))}%`, height: `${6 + 26 * one.importance}px` }} title=${one.topic} />`)}<i class="now" style=${{ left: `${at(now)}%` }} /></div></div>`}
      </div>
    <//>`;
}

/** When a fact ceased to hold: when it says so, or when the fact began that replaced it. */
function ended(fact, facts) {
  if (fact.held_until) return ms(fact.held_until);
  const newer = fact.superseded_by && facts.find((one) => one.fact.id === fact.superseded_by);
  return newer ? ms(since(newer.fact)) : fact.superseded_by ? ms(fact.learned_at) : null;
}

const isNarrow = () => matchMedia("(max-width: 899px)").matches;

function days(start, now) {
  const count = (now - start) / 86_400_000;
  const step = Math.max(1, Math.ceil(count / 6));
  const found = [];
  const first = new Date(start);
  first.setHours(0, 0, 0, 0);
  for (let at = first.getTime() + 86_400_000; at < now - (isNarrow() ? 0.24 : 0.12) * (now - start); at += step * 86_400_000) found.push({ at, words: day(at) });
  return found.length > 0 && count > 1 ? found : [{ at: start, words: `${day(start)}, ${clock(start)}` }];
}

const SHOWN_RUNS = 4; // of those that were shown a fact

function FactCard({ shown, reload }) {
  const { fact, sources, prompts } = shown;
  const runs = useApi(prompts ? `/runs?fact=${encodeURIComponent(fact.id)}` : null);
  // What a person alone said in a group is known in direct chats with them too.
  const isOwn = fact.place.kind !== "direct" && sources.length > 0 && sources.every((one) => one.author.id === fact.subject.id);
  const scope = (fact.scope || "chat") === "chat" && isOwn ? "group" : fact.scope || "chat";
  return html`
    <${Card} title=${html`<span dir="auto">${fact.text}</span>`}>
      <dl class="details">
        <div><dt>${t("fact.holds")}</dt><dd>${t(isCurrent(shown) ? "fact.since" : "fact.until", { from: when(since(fact)), until: fact.held_until ? when(fact.held_until) : t("fact.newer") })}</dd></div>
        <div><dt>${t("fact.kind")}</dt><dd>${fact.key ? named("key", fact.key.split(":")[0]) : t("memory.other")}</dd></div>
        <div><dt>${t("fact.sure")}</dt><dd>${(fact.confidence ?? 1).toFixed(2)}${fact.hearsay ? `, ${t("fact.hearsay")}` : ""}</dd></div>
        <div><dt>${t("fact.visible")}</dt><dd>${t(`scope.${scope}`, { place: placeName(fact.place) })}</dd></div>
        <div><dt>${t("fact.id")}</dt><dd class="mono">${short(fact.id)}</dd></div>
      </dl>
      <div class="pad">
        <h3>${t("fact.source")}</h3>
        ${sources.length ? sources.map((one) => html`<blockquote key=${one.id} dir="auto">${one.text}<footer><a href=${messageLink(shown.place_key, one)}>${one.author.name}${one.sent_at ? `, ${when(one.sent_at)}` : ""}</a></footer></blockquote>`)
          : html`<p class="muted">${fact.imported_from ? t("fact.imported", { from: fact.imported_from }) : t("fact.no_source")}</p>`}
        <h3>${prompts ? html`<a href=${to("/runs", { fact: fact.id })}>${t("fact.prompts", { n: prompts })}</a>` : t("fact.prompts", { n: prompts })}</h3>
        ${runs.data?.length > 0 && html`<ul class="shown-to">${runs.data.slice(0, SHOWN_RUNS).map(({ run, message }) => html`
          <li key=${run.id}><a class="cut" href=${to(`/run/${run.id}`)}><span class="muted n">${when(run.began_at)}</span> <bdi>${message?.text || t("message.gone")}</bdi></a></li>`)}</ul>`}
        <${Forget} id=${fact.id} text=${fact.text} after=${reload} />
        <p class="note">${t("forget.explained")}</p>
      </div>
    <//>`;
}

const Episodes = ({ rows, reload }) => html`
  <${Card} title=${t("memory.episodes")} count=${rows.length}>
    ${rows.length ? html`<table class="rows episodes"><tbody>${[...rows].sort((a, b) => (a.started_at < b.started_at ? 1 : -1)).map((one) => html`
      <tr class="row" key=${one.id}><td class="n muted when">${one.started_at ? when(one.started_at) : ""}</td>
        <td class="main cut" dir="auto"><a href=${to(`/p/${one.place_key}`, { before: one.stop + 1 })}>${one.topic || t("memory.no_topic")}</a></td>
        <td class="text cut muted" dir="auto">${one.summary}</td>
        <td class="n" data-of=${t("memory.importance")} title=${t("memory.importance")}>${one.importance.toFixed(2)}</td>
        <td class="state"><${Act} label=${t("hide")} order=${{ kind: "hide episode", subject: one.id }} question=${t("hide.episode")} after=${reload} /></td></tr>`)}</tbody></table>`
      : html`<${Empty}>${t("memory.no_episodes")}<//>`}
  <//>`;

export function PlaceMemoryPage({ place }) {
  const shown = useApi(`/places/${place}/memory`);
  return html`<${Loaded} of=${shown}>${(found) => html`<${PlaceMemory} shown=${found} reload=${shown.reload} />`}<//>`;
}

function PlaceMemory({ shown, reload }) {
  const { query } = useSignal(address);
  const name = placeName(shown.row.place);
  const chosen = shown.facts.find((one) => one.fact.id === query.fact) || shown.facts[0];
  return html`
    <div class="page">
      <${Heading} title=${t("memory.of_place", { place: name })} note=${t("memory.place_note", { facts: shown.facts.length, episodes: shown.episodes.length, n: shown.people.length })} />
      <div class="columns">
        <div><${Lanes} facts=${shown.facts} episodes=${shown.episodes} chosen=${chosen?.fact.id} name=${name} />
          <${Card} title=${t("people")} count=${shown.people.length}><${PeopleLines} rows=${shown.people} /><//>
          <${Episodes} rows=${shown.episodes} reload=${reload} /></div>
        <aside aria-label=${t("memory.fact")}>${chosen ? html`<${FactCard} key=${chosen.fact.id} shown=${chosen} reload=${reload} />` : ""}</aside>
      </div>
    </div>`;
}
