// Agents: who speaks for the bot, what each has of its own, and what it has spent today.
import { html, money, number, t, to, useApi, when } from "../core.js";
import { Avatar, Card, Chip, Heading, Loaded, Money } from "../parts.js";

export function AgentsPage() {
  const shown = useApi("/agents", { every: 10 });
  return html`<${Loaded} of=${shown}>${(rows) => html`<${Agents} rows=${rows} />`}<//>`;
}

const Agents = ({ rows }) => html`
  <div class="page">
    <${Heading} title=${t("nav.agents")} note=${t("agents.note", { n: rows.length, money: money(rows.reduce((sum, row) => sum + row.today.money, 0)) })} />
    <${Card} title=${t("nav.agents")} count=${rows.length}>
      <table class="rows agents">
        <thead><tr><th>${t("agents.one")}</th><th>${t("agents.called")}</th><th>${t("agents.models")}</th><th>${t("agents.knows")}</th><th>${t("agents.where")}</th><th class="n">${t("nav.places")}</th><th class="n">${t("agents.today")}</th></tr></thead>
        <tbody>${rows.map((row) => html`
          <tr class="row" key=${row.name}>
            <td class="main person"><${Avatar} author=${{ name: row.name, persona: row.name }} /><span><bdi>${row.name}</bdi> ${row.default && html`<${Chip} kind="accent">${t("agents.default")}<//>`}
              <small>${row.added_at ? t("agents.added", { when: when(row.added_at) }) : t("agents.of_config")}</small></span></td>
            <td class="text" data-of=${t("agents.called")}>${row.called.join(", ")}</td>
            <td class="text" data-of=${t("agents.models")}>${row.models.join(", ")}<small>${row.profile}</small></td>
            <td class="text" data-of=${t("agents.knows")}>${t(`agents.knows.${row.knows}`)}<small>${t(`agents.memory.${row.memory}`)}</small></td>
            <td class="text" data-of=${t("agents.where")}>${row.listed.length ? row.listed.join(", ") : t("agents.everywhere")}</td>
            <td class="n" data-of=${t("nav.places")}>${number(row.places)}</td>
            <td class="n" data-of=${t("agents.today")}><a href=${to("/usage", { by: "agent" })}><${Money} spent=${row.today} /></a></td>
          </tr>`)}</tbody>
      </table>
    <//>
  </div>`;
