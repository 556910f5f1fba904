// Rooms: opened here, their links shown once; and which there are.
import { ask, html, money, session, t, to, useApi, useSignal, useState, when } from "../core.js";
import { Act, Card, Chip, Copy, Empty } from "../parts.js";

const FIELDS = [["people", 1, 50, 1], ["days", 1, 366, 1], ["tokens", 1, 1e9, 1], ["money", 0.01, 1e6, 0.01]];
const KIND = { open: "ok", ended: "", revoked: "bad" };

export function RoomsCard() {
  const shown = useApi("/rooms", { every: 10 });
  const can = useSignal(session)?.can_write;
  const [opened, setOpened] = useState(null);
  const [isAsking, setAsking] = useState(false);
  const rows = shown.data;
  if (!rows) return shown.error ? html`<${Card} title=${t("rooms")}><${Empty}>${shown.error.message}<//><//>` : null;
  const done = (found) => (setOpened(found), setAsking(false), shown.reload());
  return html`
    <${Card} title=${t("rooms")} count=${rows.length || undefined} side=${can && !isAsking && html`<button type="button" class=${rows.length ? "" : "solid"} onClick=${() => setAsking(true)}>${t("rooms.open")}</button>`}>
      ${isAsking && html`<${OpenForm} done=${done} leave=${() => setAsking(false)} />`}
      ${opened && html`
        <div class="pad opened" role="status"><p><b dir="auto">${opened.room.title}</b> ${t("rooms.is_open", { until: when(opened.room.ends_at) })}</p>
          <p class="mono link">${opened.link}</p><p class="note">${t("rooms.once")}</p>
          <div class="buttons"><${Copy} text=${opened.link} label=${t("rooms.copy")} /><a class="button" href=${to(`/r/${encodeURIComponent(opened.room.id)}`)}>${t("rooms.enter")}</a></div></div>`}
      ${rows.map((room) => html`<${RoomLine} key=${room.id} room=${room} reload=${shown.reload} />`)}
      ${!rows.length && !isAsking && html`<${Empty}>${t("rooms.none")}<//>`}
    <//>`;
}

function RoomLine({ room, reload }) {
  const [isOpen, setOpen] = useState(false);
  const lives = room.state === "open";
  const revoke = () => ask(`/rooms/${encodeURIComponent(room.id)}`, { method: "DELETE" });
  const cap = room.cap || {};
  return html`
    <article class="decide" data-row>
      <div class="grow"><p><a href=${to(`/r/${encodeURIComponent(room.id)}`)} class="strong" dir="auto">${room.title}</a> <${Chip} kind=${KIND[room.state]}>${t(`rooms.state.${room.state}`)}<//></p>
        <p class="note">${[t("rooms.people_of", { joined: room.joined, people: room.people }), room.ends_at && lives ? t("rooms.until", { when: when(room.ends_at) }) : "",
          cap.tokens ? t("rooms.tokens_a_day", { tokens: cap.tokens }) : "", cap.money ? t("rooms.money_a_day", { money: money(cap.money, 2) }) : ""].filter(Boolean).join("; ")}</p>
        ${isOpen && lives && html`<${LinkCard} room=${room.id} />`}</div>
      ${lives && html`<div class="buttons">
        <button type="button" aria-expanded=${isOpen ? "true" : "false"} onClick=${() => setOpen(!isOpen)}>${t("room.link")}</button>
        <${Act} label=${t("rooms.revoke")} kind="bad" carry=${revoke} question=${t("rooms.revoke_question", { title: room.title })} after=${reload} /></div>`}
    </article>`;
}

/** A new link, shown once; the old one opens nothing then. */
export function LinkCard({ room, first = "" }) {
  const [link, setLink] = useState(first);
  const renew = async () => {
    const found = await ask(`/rooms/${encodeURIComponent(room)}/link`, { method: "POST" });
    setLink(found.link);
  };
  return html`
    <div class="link-card">
      ${link ? html`<p class="mono link">${link}</p><p class="note">${t("rooms.once")}</p><div class="buttons"><${Copy} text=${link} label=${t("rooms.copy")} /></div>`
        : html`<p class="note">${t("rooms.hidden")}</p>`}
      <${Act} key=${link} label=${t("rooms.new_link")} carry=${renew} question=${t("rooms.new_link_question")} />
    </div>`;
}

/** The terms of a new room. What is left open is as the bot has it. */
function OpenForm({ done, leave }) {
  const [given, setGiven] = useState({ title: "" });
  const [state, setState] = useState({});
  async function open(event) {
    event.preventDefault();
    setState({ busy: true });
    try {
      const body = { title: given.title.trim() };
      for (const [name] of FIELDS) if (given[name]) body[name] = Number(given[name]);
      done(await ask("/rooms", { method: "POST", body }));
    } catch (error) {
      setState({ error: error.message });
    }
  }
  const field = (name) => ({ value: given[name] || "", onInput: (event) => setGiven({ ...given, [name]: event.target.value }) });
  return html`
    <form class="pad terms" onSubmit=${open} onKeyDown=${(event) => event.key === "Escape" && (event.stopPropagation(), leave())}>
      <p class="note wide">${t("rooms.terms")}</p>
      <label class="wide">${t("rooms.title")}<input maxlength="100" autofocus ...${field("title")} /></label>
      ${FIELDS.map(([name, least, most, step]) => html`<label key=${name}>${t(`rooms.field.${name}`)}<input type="number" inputmode="decimal" min=${least} max=${most} step=${step} placeholder=${t(`rooms.usual.${name}`)} ...${field(name)} /></label>`)}
      ${state.error && html`<p class="bad wide" role="alert">${state.error}</p>`}
      <div class="buttons wide"><button class="solid" type="submit" disabled=${state.busy}>${t("rooms.open")}</button><button type="button" onClick=${leave}>${t("act.leave")}</button></div>
    </form>`;
}
