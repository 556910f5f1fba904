// Search: all messages, and places, people and runs to jump to.
import { address, home, html, placeKind, placeName, said, t, to, useApi, useSignal, when } from "../core.js";
import { Card, Empty, Heading, Marked, messageLink } from "../parts.js";

export function SearchPage() {
  const { query } = useSignal(address);
  const wanted = (query.q || "").trim();
  const found = useApi(wanted ? `/search?q=${encodeURIComponent(wanted)}` : null);
  const low = wanted.toLowerCase();
  const places = (useSignal(home)?.places || []).filter((row) => wanted && placeName(row.place).toLowerCase().includes(low)).slice(0, 6);
  const people = (useApi(wanted ? "/people" : null).data || []).filter((row) => `${row.person.name} ${row.person.id}`.toLowerCase().includes(low)).slice(0, 6);
  const words = wanted.match(/[\p{L}\p{N}]+/gu) || [];
  const isRun = /^[0-9a-f]{6,64}$/i.test(wanted);
  return html`
    <div class="page">
      <${Heading} title=${wanted ? t("search.of", { words: wanted }) : t("search")} note=${t("search.note")} />
      ${(places.length > 0 || people.length > 0 || isRun) && html`
        <${Card} title=${t("search.jump")}>
          ${places.map((row) => html`<article class="line" key=${row.key} data-row><p><a href=${to(`/p/${row.key}`)}><bdi>${placeName(row.place)}</bdi></a> <span class="note">${placeKind(row.place)}</span></p></article>`)}
          ${people.map((row) => html`<article class="line" key=${row.key} data-row><p><a href=${to(`/people/${row.key}`)}><bdi>${row.person.name || row.person.id}</bdi></a> <span class="note">${t("nav.memory")}</span></p></article>`)}
          ${isRun && html`<article class="line" data-row><p><a href=${to(`/run/${wanted}`)}>${t("run.named", { id: wanted.slice(0, 8) })}</a></p></article>`}
        <//>`}
      <${Card} title=${t("search.messages")} count=${found.data?.length}>
        ${found.error && html`<p class="notice bad" role="alert">${found.error.message}</p>`}
        ${found.data?.length ? html`<table class="rows hits"><tbody>${found.data.map((hit) => html`
          <tr class="row" key=${`${hit.place_key} ${hit.message.id}`}><td class="n muted when">${hit.message.sent_at ? when(hit.message.sent_at) : ""}</td>
            <td class="cut where"><bdi>${placeName(hit.place)}</bdi></td>
            <td class="text main" dir="auto"><a class="whole" href=${messageLink(hit.place_key, hit.message)}><span class="muted">${hit.message.author.name}: </span><${Marked} text=${hit.message.text} words=${saidWords(hit.why, words)} /></a></td>
            <td class="note">${said(hit.why)}</td></tr>`)}</tbody></table>`
          : html`<${Empty}>${wanted ? found.data ? t("search.nothing") : t("search.busy") : t("search.begin")}<//>`}
      <//>
    </div>`;
}

/** The words that speak for a message, as the search says them, and those that were asked for. */
const saidWords = (why, asked) => [...asked, ...(/it says ([^;]*)/.exec(why)?.[1].split(", ") || [])];
