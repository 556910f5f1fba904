// Runs, the newest first; those that failed alone; those of one place.
import { address, ask, html, t, to, useApi, useSignal, useState } from "../core.js";
import { Card, Empty, Heading, Loaded, Tabs } from "../parts.js";
import { RunLines } from "./home.js";

const PAGE = 60;

export function RunsPage() {
  const { query } = useSignal(address);
  const asked = new URLSearchParams(Object.entries({ status: query.status, place: query.place, fact: query.fact }).filter(([, value]) => value)).toString();
  const path = `/runs${asked ? `?${asked}` : ""}`;
  const shown = useApi(path, { every: 10 });
  return html`<${Loaded} of=${shown}>${(first) => html`<${Runs} key=${path} first=${first} path=${path} query=${query} />`}<//>`;
}

function Runs({ first, path, query }) {
  const [older, setOlder] = useState([]);
  const rows = [...new Map([...first, ...older].map((row) => [row.run.id, row])).values()];
  const more = async () => {
    const last = rows[rows.length - 1].run.id;
    setOlder([...older, ...(await ask(`${path}${path.includes("?") ? "&" : "?"}before=${encodeURIComponent(last)}`))]);
  };
  const full = rows.length && rows.length % PAGE === 0;
  return html`
    <div class="page">
      <${Heading} title=${t("nav.runs")} note=${t(query.fact ? "runs.of_fact" : "runs.note")}
        side=${(query.place || query.fact) && html`<a class="button" href=${to("/runs")}>${t("runs.everywhere")}</a>`} />
      <${Card} title=${t("runs.newest")} count=${rows.length}
        side=${html`<${Tabs} name="status" initial="" current=${query.status || ""} label=${t("runs.status")}
          of=${[["", t("places.all")], ["open", t("places.answering")], ["done", t("runs.done")], ["failed", t("places.failed")]]} />`}>
        ${rows.length ? html`<${RunLines} rows=${rows} />` : html`<${Empty}>${t("runs.none")}<//>`}
        ${full ? html`<p class="more"><button type="button" onClick=${more}>${t("more")}</button></p>` : ""}
      <//>
    </div>`;
}
