// A run from its message to its reply: a time line, and each request as it was sent.
import {
  address, agentOf, agents, api, clock, day, duration, html, isToday, money, named, number, placeName, said, seconds, session, setQuery, share, short, t, textOf, to,
  useApi, useCrumbs, useSignal, when, ask,
} from "../core.js";
import {
  Act, Card, Checks, Chip, Copy, Empty, Heading, Json, LayerBar, Loaded, MediaView, Money, Tabs, Whose, layerName, messageLink, shown as valueOf, totalOf,
} from "../parts.js";
import { Replay } from "./replay.js";
import { Timeline } from "./timeline.js";

export function RunPage({ run: id }) {
  const shown = useApi(`/runs/${encodeURIComponent(id)}`);
  return html`<${Loaded} of=${shown}>${(run) => html`<${RunView} key=${id} shown=${run} reload=${shown.reload} />`}<//>`;
}

const FORMS = ["compact", "timeline", "events"];
export const TABS = ["text", "wire", "response", "checks", "replay"];

function RunView({ shown, reload }) {
  const { query } = useSignal(address);
  useSignal(agents);
  const { row, steps } = shown;
  const { run, message, spent } = row;
  useCrumbs([[placeName(run.place), `/p/${row.place_key}`]]);
  const status = run.status || "open";
  const wanted = Number(query.step ?? steps.length) - 1;
  const at = Math.max(0, Math.min(steps.length - 1, Number.isFinite(wanted) ? wanted : 0));
  const step = steps[at];
  const form = FORMS.includes(query.form) ? query.form : "compact";
  return html`
    <div class="page">
      <${Heading} title=${message ? message.text || t("message.media") : t("message.gone")} note=${sentence(shown, status)}
        side=${html`
          ${agentOf(run.agent) && html`<${Chip}><${Whose} agent=${run.agent} /><//>`}
          <${Chip} kind=${{ done: "ok", failed: "bad", open: "accent" }[status]}>${t(`run.${status}`)}<//>
          ${status === "failed" && html`<${Act} label=${t("run.retry")} order=${{ kind: "retry run", subject: run.id }} after=${reload} question=${t("run.retry_question")} />`}
          ${step && html`<${Copies} run=${run} step=${step} />`}`} />
      <${Card} title=${t(status === "failed" ? "run.to_notice" : "run.from_to")} kind="line-card"
        side=${html`<${Tabs} name="form" initial="compact" current=${form} label=${t("run.form")} of=${FORMS.map((name) => [name, t(`run.${name}`)])} />
          <span class="muted n">${spent.input ? html`<${Money} spent=${spent} />${spent.without_cache > spent.money ? ` (${t("home.without_cache", { money: money(spent.without_cache) })})` : ""}` : t("run.no_tokens")}</span>`}>
        ${shown.spans.length ? html`<${Timeline} shown=${shown} form=${form} step=${step?.step} onStep=${(number) => setQuery({ step: steps.findIndex((one) => one.step === number) + 1 })} />`
          : html`<${Empty}>${t("run.no_spans")}<//>`}
      <//>
      ${status === "failed" && html`
        <div class="pair">
          <${Card} title=${t("run.why_failed")}><div class="pad"><p class="mono bad">${run.why}</p>${shown.must_act && html`<p class="muted">${t(`must_act.${shown.must_act}`)}</p>`}</div><//>
          <${Card} title=${t("run.what_read")}>${shown.replies.length ? shown.replies.map((one) => html`<p class="pad" dir="auto" key=${one.item.id}>${one.item.reply.text}</p>`) : html`<${Empty}>${t("run.nothing_read")}<//>`}<//>
        </div>`}
      ${step ? html`<${Requests} shown=${shown} step=${step} at=${at} query=${query} />` : html`<${Card} title=${t("request")}><${Empty}>${shown.why_no_steps || t("run.no_steps")}<//><//>`}
    </div>`;
}

function sentence({ row, steps, replies }, status) {
  const { run, message } = row;
  const who = message ? `${message.author.name}, ` : "";
  const where = `${who}${run.place.kind === "direct" ? named("kind", "direct") : placeName(run.place)}, ${when(run.began_at)}. `;
  if (status === "open") return where + t("run.still");
  const took = run.ended_at ? duration(seconds(run.began_at, run.ended_at)) : "";
  const tools = steps.reduce((sum, step) => sum + step.tool_runs.length, 0);
  if (status === "failed") return where + t("run.failed_after", { took });
  return where + t("run.answered_in", { took }) + " " + t("run.with", { n: steps.length }) + (tools ? `, ${t("run.tools", { n: tools })}` : "") + ".";
}

function Copies({ run, step }) {
  const path = `/runs/${encodeURIComponent(run.id)}/steps/${step.step}/requests`;
  const last = async () => {
    const all = await ask(path);
    return all[all.length - 1];
  };
  return html`
    <${Copy} id="copy-curl" label=${t("copy.curl")} text=${async () => (await last()).curl} />
    <${Copy} label=${t("copy.pytest")} text=${async () => (await last()).pytest} />
    <${Copy} label=${t("copy.json")} text=${async () => (await last()).body} />`;
}

const usageOf = (step) => step.calls.map((one) => one.call).filter((call) => call.usage?.input).pop()?.usage || {};

function Requests({ shown, step, at, query }) {
  const { steps } = shown;
  const tab = TABS.includes(query.tab) ? query.tab : "text";
  const usage = usageOf(step);
  const names = step.layers.map((layer) => layer.name);
  const layers = layersOf(step, usage);
  const chosen = layers.some((one) => one.name === query.layer) ? query.layer : (layers.find(isFresh) || layers[0])?.name;
  return html`
    <section class="card request">
      <header>
        <h2 class="hidden">${t("request")}</h2>
        <div class="tabs" role="group" aria-label=${t("request")}>
          ${steps.map((one, index) => html`<button key=${one.step} type="button" aria-pressed=${index === at ? "true" : "false"} onClick=${() => setQuery({ step: index + 1, layer: "" })}>${t("span.request", { n: index + 1 })}</button>`)}
        </div>
        <span class="muted counted">${step.model} · ${usage.input ? t("run.counted", { input: usage.input, cached: usage.cached || 0, output: (usage.output || 0) + (usage.thought || 0) }) : t("run.about", { tokens: totalOf(step.size) })}</span>
        <div class="side"><${Tabs} name="tab" initial="text" current=${tab} label=${t("run.parts")} of=${TABS.map((name) => [name, t(`tab.${name}`)])} /></div>
      </header>
      ${step.tried && html`<p class="pad warn">${t("run.fallback", { fallback: step.tried.fallback, why: step.tried.why })}</p>`}
      <div class="pad">
        <${LayerBar} tall layers=${names} size=${step.size} counted=${usage.input} cached=${usage.cached || 0} chosen=${chosen} onChoose=${(name) => setQuery({ layer: name, tab: "" })} />
        <p class="scale"><span>${t("run.start")}</span><span>${t("run.faded")}</span><span class="n">${usage.input ? number(usage.input) : t("about", { tokens: totalOf(step.size) })}</span></p>
      </div>
      ${tab === "replay" ? html`<div class="pad" id="text-pane" tabindex="0" role="region" aria-label=${t("tab.replay")}><${Replay} key=${step.step} run=${shown.row.run} step=${step} /></div>` : html`
      <div class="three">
        <${LayerList} layers=${layers} chosen=${chosen} step=${step} shown=${shown} />
        <div class="text-pane" id="text-pane" tabindex="0" role="region" aria-label=${t(`tab.${tab}`)}>
          ${tab === "text" ? html`<${LayerText} key=${chosen} layers=${layers} chosen=${chosen} />` : html`<${Wire} shown=${shown} step=${step} tab=${tab} />`}
        </div>
        <${Beside} step=${step} shown=${shown} />
      </div>`}
    </section>`;
}

/** Whether something of a layer was paid in full. */
const isFresh = (layer) => layer.tokens - layer.cached >= 1;

/** The layers of a step with the service's tokens, and what of each it had in its cache. */
function layersOf(step, usage) {
  const tools = step.tool_tokens ? [{ name: "tools", tokens: step.tool_tokens, tools: step.tools }] : [];
  const all = [...tools, ...step.layers.filter((layer) => layer.tokens || layer.instruction || layer.turns.length)];
  const sum = all.reduce((total, layer) => total + layer.tokens, 0) || 1;
  const scale = usage.input ? usage.input / sum : 1;
  let position = 0;
  return all.map((layer) => {
    const tokens = layer.tokens * scale;
    const cached = Math.max(0, Math.min(tokens, (usage.cached || 0) - position));
    position += tokens;
    return { ...layer, tokens, cached };
  });
}

const LayerList = ({ layers, chosen, step, shown }) => html`
  <div class="layers">
    <ol>${layers.map((layer, index) => html`
      <li key=${layer.name} class=${layer.name === chosen ? "chosen" : ""}>
        <button type="button" class="plain" aria-current=${layer.name === chosen ? "true" : undefined} data-layer=${index + 1} onClick=${() => setQuery({ layer: layer.name, tab: "" })}>
          <i class="b-${layer.name}" /><span class="grow"><b>${layerName(layer.name)}</b><small class="cut">${noteOf(layer)}</small></span>
          <span class="n">${number(layer.tokens)}</span>
          <span class="n ${isFresh(layer) ? "fresh" : "muted"}">${isFresh(layer) ? t("run.new", { tokens: layer.tokens - layer.cached }) : t("cached")}</span>
        </button>
      </li>`)}</ol>
    ${step.answer && html`
      <div class="answer"><h3>${t(step.usable ? "run.wrote" : "run.unusable")}</h3><${Parts} parts=${step.answer.parts} /></div>`}
    ${shown.replies.length > 0 && html`<p class="pad note">${shown.replies.map((one) => deliveryWords(one)).join(" ")}</p>`}
  </div>`;

const deliveryWords = ({ item }) => t(`delivery.${item.status}`, { id: item.message_id || "?", why: item.why, platform: item.reply.place.platform });

function noteOf(layer) {
  if (layer.tools) return `${t("run.n_tools", { n: layer.tools.length })}: ${layer.tools.map((tool) => tool.name).join(", ")}`;
  const turns = layer.turns.length ? t("run.turns", { n: layer.turns.length }) : "";
  const instruction = layer.instruction ? layer.instruction.slice(0, 80) : "";
  return [turns, instruction].filter(Boolean).join(" · ");
}

/** A layer as it is read, and what comes after it. */
function LayerText({ layers, chosen }) {
  return layers.slice(layers.findIndex((one) => one.name === chosen)).map((layer) => html`<section key=${layer.name}><${OneLayer} layer=${layer} /></section>`);
}

function OneLayer({ layer }) {
  return html`
    <h3><i class="b-${layer.name}" />${layerName(layer.name)} <span class="muted">${noteOf(layer).slice(0, 60)}</span></h3>
    ${layer.tools?.map((tool) => html`<div key=${tool.name} class="tool-spec"><p><code>${tool.name}</code> ${tool.description}</p><${Json} text=${JSON.stringify(tool.parameters || {}, null, 2)} /></div>`)}
    ${layer.instruction && html`<pre class="said" dir="auto">${layer.instruction}</pre>`}
    ${layer.turns?.map((turn, index) => html`
      <div class="turn" key=${index}><span class="role ${turn.role}">${turn.role}</span><div class="grow"><${Parts} parts=${turn.parts} /></div></div>`)}`;
}

/** The parts of a turn as text. */
export const Parts = ({ parts }) => parts.map((part, at) => {
  switch (part.kind) {
    case "text": return html`<pre key=${at} class="said" dir="auto">${part.text}</pre>`;
    case "thought": return html`<pre key=${at} class="said muted" dir="auto"><i>${t("part.thought")} </i>${part.text}</pre>`;
    case "tool_call": return html`<pre key=${at} class="said"><i>${t("part.call")} </i><b>${part.name}</b> ${JSON.stringify(part.args || {})}</pre>`;
    case "tool_result": return html`<pre key=${at} class="said ${part.failed ? "bad" : ""}"><i>${t("part.result")} </i><b>${part.name}</b> ${valueOf(part.value)}</pre>`;
    case "media": return html`<${MediaView} key=${at} media=${part} />`;
    default: return html`<pre key=${at} class="said muted">${JSON.stringify(part.raw)}</pre>`;
  }
});

function Wire({ shown, step, tab }) {
  const found = useApi(`/runs/${encodeURIComponent(shown.row.run.id)}/steps/${step.step}/requests`);
  return html`<${Loaded} of=${found}>${(requests) => requests.length ? requests.map((one, index) => html`
    <div key=${index} class="wire">
      ${requests.length > 1 && html`<h3>${t("span.try", { n: one.call.attempt || 1 })}</h3>`}
      ${tab === "checks" ? html`<${Checks} checks=${one.checks} />`
        : tab === "wire" ? one.body ? html`<p class="note">${t("run.indented")}</p><${Json} text=${indented(one.body)} />` : html`<${Empty}>${t("run.no_body")}<//>`
        : one.response ? html`<${Json} text=${indented(one.response)} />` : html`<${Empty}>${t("run.no_response")}${one.call.why ? ` ${one.call.why}` : ""}<//>`}
    </div>`) : html`<${Empty}>${t("run.no_requests")}<//>`}<//>`;
}

const SIGNATURE = /signature/i;

/** JSON with line breaks. Signatures are long and say nothing: their length is told. */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), (key, value) =>
      SIGNATURE.test(key) && typeof value === "string" && value.length > 40 ? t("run.signature", { n: value.length }) : value, 2);
  } catch {
    return text;
  }
}

function Beside({ step, shown }) {
  const found = useApi(`/runs/${encodeURIComponent(shown.row.run.id)}/steps/${step.step}/requests`);
  const checks = found.data?.flatMap((one) => one.checks) || [];
  const recalled = shown.recalled;
  return html`
    <div class="beside">
      <h3>${t("tab.checks")}</h3>
      ${checks.length ? html`<${Checks} checks=${checks} />` : html`<p class="muted">${found.error ? found.error.message : t("run.no_checks")}</p>`}
      <h3>${t("run.left_out")}</h3>
      ${step.left_out.length ? html`<ul class="left">${step.left_out.map((one, at) => html`
        <li key=${at}><b>${number(one.count || 1)}</b> ${named("source", one.source)}${one.tokens ? html` <span class="muted">${t("run.tokens", { n: one.tokens })}</span>` : ""}: ${said(one.why)}${one.text && html`<q class="cut" dir="auto">${one.text}</q>`}</li>`)}</ul>`
        : html`<p class="muted">${t("run.nothing_left_out")}</p>`}
      <h3>${t("run.recalled")}</h3>
      ${recalled.length ? html`<ul class="left">${recalled.map((one, at) => html`
        <li key=${at}><span class="muted">${named("evidence", one.thing.kind)}${one.thing.score !== undefined && one.thing.score !== null ? ` ${one.thing.score.toFixed(2)}` : ""} </span><span dir="auto">${one.text || t("recalled.gone")}</span>${one.thing.why && html`<span class="note"> ${said(one.thing.why)}</span>`}</li>`)}</ul>`
        : html`<p class="muted">${t("run.nothing_recalled")}</p>`}
      <h3>${t("run.cost")}</h3>
      <${Cost} calls=${step.calls} />
      ${shown.tasks.length > 0 && html`<h3>${t("nav.tasks")}</h3>${shown.tasks.map((task) => html`<p key=${task.id}><a href=${to("/tasks")}>${named("task", task.kind)}</a>, ${when(task.due_at)}</p>`)}`}
    </div>`;
}

function Cost({ calls }) {
  if (!calls.length) return html`<p class="muted">${t("run.no_calls")}</p>`;
  return calls.map(({ call, without_cache: without }, at) => {
    const { input = 0, cached = 0, output = 0, thought = 0 } = call.usage || {};
    const { price } = call;
    const at5 = (tokens, each) => (price ? money((tokens * each) / 1e6, 5) : "?");
    return html`
      ${calls.length > 1 && html`<p class="note">${t("span.try", { n: call.attempt || at + 1 })}${call.error ? `: ${call.error}` : ""}</p>`}
      <dl class="figures">
        <div><dt>${t("new")}</dt><dd>${number(input - cached)}</dd><dd>${at5(input - cached, price?.input)}</dd></div>
        <div><dt>${t("cached")}</dt><dd>${number(cached)}</dd><dd>${at5(cached, price?.cached ?? price?.input)}</dd></div>
        <div><dt>${t("run.written")}</dt><dd>${number(output + thought)}</dd><dd>${at5(output + thought, price?.output)}</dd></div>
        ${without > (call.money || 0) && html`<div><dt>${t("run.without")}</dt><dd /><dd>${money(without, 5)}</dd></div>`}
      </dl>
      ${!price && html`<p class="note">${t("price.unknown")}</p>`}`;
  });
}
