// A past request in another profile or for another model, beside itself; and sent to a model of the bot.
import { address, ask, html, money, number, session, setQuery, t, useApi, useSignal, useState } from "../core.js";
import { Checks, Empty, Loaded } from "../parts.js";
import { Parts } from "./run.js";
import { piecesOf, shortened } from "./strata.js";

export function Replay({ run, step }) {
  const path = `/runs/${encodeURIComponent(run.id)}/steps/${step.step}`;
  const choices = useApi("/replay");
  const { query } = useSignal(address);
  return html`<${Loaded} of=${choices}>${({ profiles, models }) => {
    const profile = profiles.includes(query.profile) ? query.profile : "";
    const model = models.includes(query.model) ? query.model : "";
    const chosen = new URLSearchParams({ ...(profile && { profile }), ...(model && { model }) });
    return html`
      <div class="replay">
        <p class="choices">
          <${Choice} name="profile" label=${t("replay.profile")} none=${t("replay.as_it_was", { name: run.profile || "?" })} of=${profiles} current=${profile} />
          <${Choice} name="model" label=${t("replay.model")} none=${t("replay.as_it_was", { name: step.model })} of=${models} current=${model} />
        </p>
        ${models.length > 0 && html`<${Sending} key=${`${path}?${chosen}`} path=${path} models=${models} model=${model} profile=${profile} chosen=${chosen} />`}
        ${profile || model ? html`<${Rendered} path=${path} chosen=${chosen} />` : html`<${Empty}>${t(models.length ? "replay.choose" : "replay.no_models")}<//>`}
      </div>`;
  }}<//>`;
}

const Choice = ({ name, label, none, of, current }) => html`
  <label>${label} <select id="replay-${name}" value=${current} onChange=${(event) => setQuery({ [name]: event.target.value })}>
    <option value="">${none}</option>${of.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
  </select></label>`;

const priceOf = (found) => (found.money === null ? t("price.unknown") : t("replay.costs", { money: money(found.money, 5) }));

function Rendered({ path, chosen }) {
  const shown = useApi(`${path}/rendered?${chosen}`);
  return html`<${Loaded} of=${shown}>${(found) => html`
    <p class="note">${t("replay.rendered", { profile: found.profile, model: found.model, tokens: number(found.tokens) })}</p>
    <${Sides} before=${indented(found.before)} after=${indented(found.after)} />`}<//>`;
}

/** Two texts beside each other, with what differs marked in both. */
function Sides({ before, after }) {
  const pieces = before === after ? [{ value: [before] }] : piecesOf(before, after);
  const side = (text, gone, mark) => (pieces ? pieces.filter((one) => !one[gone]).map((one, at, all) =>
    one.added || one.removed ? html`<${mark} key=${at}>${one.value.join("")}<//>` : html`<span key=${at}>${shortened(one.value.join(""), at === 0, at === all.length - 1)}</span>`) : text);
  return html`
    <div class="pair">
      <div><h3>${t("replay.sent")}</h3><pre class="said diff" dir="auto">${side(before, "added", "del")}</pre></div>
      <div><h3>${t("replay.would")}</h3><pre class="said diff" dir="auto">${side(after, "removed", "ins")}</pre></div>
    </div>`;
}

const indented = (text) => (text ? JSON.stringify(JSON.parse(text), null, 2) : "");

/** Sends the request once the owner has seen what it costs. */
function Sending({ path, models, model, profile, chosen }) {
  const [state, setState] = useState({});
  if (!useSignal(session)?.can_write) return null;
  const target = model || models[0];

  async function price() {
    setState({ waits: true });
    const query = new URLSearchParams(chosen);
    query.set("model", target);
    try {
      setState({ price: priceOf(await ask(`${path}/rendered?${query}`)) });
    } catch (error) {
      setState({ price: error.message });
    }
  }

  async function send() {
    setState({ waits: true });
    try {
      setState({ found: await ask(`${path}/replay`, { method: "POST", body: { model: target, ...(profile && { profile }) } }) });
    } catch (error) {
      setState({ failed: error.message });
    }
  }

  return html`
    <div class="sending" role="status">
      ${state.price ? html`
        <p>${t("replay.question", { model: target })} ${state.price}</p>
        <button type="button" class="primary" id="replay-send" onClick=${send}>${t("replay.send_now")}</button> <button type="button" onClick=${() => setState({})}>${t("act.leave")}</button>`
        : html`<button type="button" id="replay-to" disabled=${state.waits} onClick=${price}>${t(state.waits ? "replay.waits" : "replay.send", { model: target })}</button>`}
      ${state.failed && html`<p class="bad">${state.failed}</p>`}
      ${state.found && html`<${Answer} found=${state.found} />`}
    </div>`;
}

function Answer({ found: { before, after, call, check, finish } }) {
  const { input = 0, output = 0, thought = 0 } = call.usage || {};
  return html`
    <${Checks} checks=${[check]} />
    <p class="note">${t("replay.cost", { model: call.model, tokens: number(input + output + thought), money: call.price ? money(call.money || 0, 5) : "?", finish })}</p>
    <div class="pair">
      <div><h3>${t("replay.then")}</h3>${before ? html`<${Parts} parts=${before.parts} />` : html`<${Empty}>${t("run.no_response")}<//>`}</div>
      <div id="replay-now"><h3>${t("replay.now")}</h3><${Parts} parts=${after.parts} /></div>
    </div>`;
}
