// A room: people who came by a link and the agent. What changes comes by the stream; what is written goes up at once.
import {
  address, agentOf, api, ask, meet, clock, html, remembered, session, setQuery, t, textOf, to, useEffect, useMemo, useRef, useSignal, useState, when,
} from "../core.js";
import { Announcer, Log, MOST, Said, useLive, useStream } from "../conversation.js";
import { Act, Avatar, Chip, Empty, Icon, Name, ToolChip } from "../parts.js";
import { LiveText, readTexts } from "../text.js";
import { Composer } from "../composer.js";
import { LinkCard } from "./rooms.js";

const EMOJIS = ["👍", "❤️", "😂", "🎉", "😮", "🙏"];
const FINAL = [401, 404, 410]; // statuses after which nothing more comes
const PAGE = 60; // messages; a change has no more

/** Put each item in the place of the one with its key, in their order. */
const put = (known, given = [], key) => [...new Map([...known, ...given].map((one) => [one[key], one])).values()].sort((a, b) => a[key] - b[key]);

const textsOf = (rows) => rows.flatMap(({ message, turns = [] }) => [textIn(message), ...thoughtsOf(turns)]);
const textIn = (message) => textOf((message.parts || []).filter((part) => part.kind === "text"));
const thoughtsOf = (turns) => turns.flatMap((turn) => turn.parts).filter((part) => part.kind === "thought" && part.text).map((part) => part.text);

const EMPTY = { rows: [], runs: [], deliveries: [], beginning: 0, event: null, noMore: false, atEnd: true };

/** Messages with the run that wrote each. */
function written(rows, deliveries) {
  const runs = new Map(deliveries.map((one) => [one.message_id, one.run_id]));
  return rows.map((row) => (row.run_id || !runs.get(row.message.id) ? row : { ...row, run_id: runs.get(row.message.id) }));
}

/** What the bot said by itself: it is no message, so it has no number, and stands behind what was there before it. */
const linesOf = (deliveries) => deliveries.filter((one) => one.status === "sent" && one.text);

/** What is read in a room, in order: its messages, and the lines of the bot among those that are here. */
function conversation({ rows, deliveries, noMore, atEnd }, agent) {
  const lines = linesOf(deliveries).flatMap((one) => {
    const before = rows.findLast(({ message }) => new Date(message.sent_at) <= new Date(one.made_at));
    if (before ? !atEnd && before === rows[rows.length - 1] : !noMore) return [];
    const message = { id: one.id, author: agent, sent_at: one.made_at, parts: [{ kind: "text", text: one.text }] };
    return [{ isLine: true, number: (before?.number ?? -1) + 1 - 1 / (2 + one.order), message }];
  });
  return put(rows, lines, "number");
}

/** The state of a room after a change of its stream. */
export function changed(state, change) {
  const { messages = [], anew } = change;
  const known = anew ? { ...EMPTY, event: state.event } : state;
  const last = known.rows[known.rows.length - 1]?.number ?? -1;
  const fresh = messages.filter((one) => one.number > last);
  const gap = fresh.length >= PAGE && last >= 0 && fresh[0].number > last + 1; // more came than one change holds
  const shown = known.atEnd ? messages : messages.filter((one) => one.number <= last);
  const deliveries = put(known.deliveries, change.deliveries, "order").slice(-MOST);
  const rows = written(put(gap ? [] : known.rows, shown, "number"), deliveries);
  return {
    ...known,
    rows: known.atEnd ? rows.slice(-MOST) : rows,
    runs: put(known.runs, change.runs, "order").slice(-MOST),
    deliveries,
    beginning: change.beginning,
    noMore: gap || anew ? (rows[0]?.number ?? 0) <= change.beginning : known.noMore,
  };
}

function useRoom(room) {
  const path = `/rooms/${encodeURIComponent(room)}`;
  const [about, setAbout] = useState(null);
  const [people, setPeople] = useState([]);
  const [error, setError] = useState(null);
  const [isConnected, setConnected] = useState(true);
  const [state, setState] = useState(EMPTY);
  const current = useRef(state);
  const live = useLive();
  const change = (changes) => setState((current.current = { ...current.current, ...changes }));

  const failed = (failure) => (current.current.event === null || FINAL.includes(failure.status)) && setError(failure);
  const read = () => ask(path).then((found) => (meet(found.agents), setAbout(found), setPeople(found.people)), failed);

  async function page(before) {
    const found = await ask(`${path}/messages${before === undefined ? "" : `?before=${before}`}`);
    await readTexts([...textsOf(found.messages), ...linesOf(found.deliveries).map((one) => one.text)]).catch(() => {});
    return { ...found, messages: written(found.messages, found.deliveries) };
  }

  async function newest() {
    change({ rows: [], atEnd: true, busy: true }); // what comes meanwhile is newer than the page
    try {
      const found = await page();
      const { rows, runs, deliveries, event } = current.current;
      change({ rows: put(found.messages, rows, "number"), runs: put(found.runs, runs, "order"), deliveries: put(found.deliveries, deliveries, "order"), beginning: found.beginning, event: event ?? found.event, noMore: found.before === null, busy: false });
    } catch (failure) {
      failed(failure);
    }
  }

  async function earlier() {
    const { rows, runs, busy } = current.current;
    if (busy || !rows.length) return;
    change({ busy: true });
    try {
      const found = await page(rows[0].number);
      const all = put(found.messages, current.current.rows, "number");
      change({ rows: all.slice(0, MOST), runs: put(found.runs, runs, "order"), noMore: found.before === null, busy: false, atEnd: current.current.atEnd && all.length <= MOST });
    } catch {
      change({ busy: false });
    }
  }

  useEffect(() => {
    read();
    newest();
  }, [room]);

  useStream(state.event === null || error ? null : `${path}/events`, state.event, {
    ...live,
    change: (given) => setState((current.current = changed(current.current, given))),
    people: (given) => setPeople(given.people),
    ended: () => setError({ status: 410 }),
    connected: (is) => {
      if (is !== isConnected) read(); // it says whether the room has ended
      setConnected(is);
    },
  });

  const writing = state.runs.filter(({ run }) => (run.status || "open") === "open" || isOnItsWay(state, run.id));
  useEffect(() => live.only((id) => writing.some(({ run }) => run.id === id) || !state.runs.some(({ run }) => run.id === id)), [state.runs, state.rows, state.deliveries]);
  return { path, about, people, error, isConnected, ...state, texts: live.texts, writing, read, earlier, newest };
}

/** Whether what a run wrote is about to come as a message. */
const isOnItsWay = ({ rows, deliveries }, run) => deliveries.some((one) => one.run_id === run && one.status === "waiting") && !rows.some((one) => one.run_id === run);

export function RoomPage({ room }) {
  const who = useSignal(session);
  if (who?.role === "guest" ? who.room !== room : !who) return html`<${Door} key=${room} room=${room} />`;
  return html`<${Room} key=${room} room=${room} />`;
}

// Entering

/** Where a link leads: it asks for a name. */
function Door({ room }) {
  const key = useRef(history.state?.key || "");
  const [error, setError] = useState(null);
  useEffect(() => void (key.current || ask(`/rooms/${encodeURIComponent(room)}`).catch(setError)), []); // has theirs ended?
  if (error?.status === 410) return html`<${Over} error=${error} />`;
  return html`
    <div class="login"><h1>${t("room.invited")}</h1><p>${t(key.current ? "room.how" : "room.no_key")}</p>
      ${key.current && html`<${NameForm} room=${room} roomKey=${key.current} label=${t("room.enter")} joined=${(found) => (history.replaceState(null, ""), (session.value = found))} />`}
    </div>`;
}

const REFUSED = { 404: "room.wrong_key", 409: "room.full", 410: "room.ended" };

function NameForm({ room, roomKey, label, joined }) {
  const [name, setName] = useState(remembered("name") || "");
  const [state, setState] = useState({});
  async function enter(event) {
    event.preventDefault();
    setState({ busy: true });
    try {
      const found = await ask(`/rooms/${encodeURIComponent(room)}/join`, { method: "POST", body: { ...(roomKey ? { key: roomKey } : {}), name: name.trim() } });
      remembered("name", name.trim());
      joined(found);
    } catch (error) {
      setState({ error: error.status in REFUSED ? t(REFUSED[error.status]) : error.message });
    }
  }
  return html`
    <form class="join" onSubmit=${enter}>
      <label>${t("room.your_name")}<input required maxlength="60" autocomplete="nickname" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <button class="solid" type="submit" disabled=${state.busy || !name.trim()}>${label}</button>
      <p role="alert" class="bad">${state.error}</p>
    </form>`;
}

// The room

function Room({ room }) {
  const shown = useRoom(room);
  const { about, error, rows, texts, writing, path, noMore, atEnd } = shown;
  const said = useMemo(() => conversation(shown, about?.agent), [rows, shown.deliveries, noMore, atEnd, about]);
  const [reply, setReply] = useState(null);
  const [edited, setEdited] = useState(null);
  const [sent, setSent] = useState([]); // what is on its way up
  const [count, setCount] = useState(0); // of what was sent
  const composer = useRef(null);
  const draft = useRef("");
  useEffect(() => setSent((before) => before.filter((one) => !rows.some((row) => row.message.id === one.message))), [rows]);
  if (error && !about) return html`<${Over} error=${error} />`;
  if (!about) return html`<div class="page" aria-busy="true"><div class="skeleton" /></div>`;
  const me = about.me;
  const { agent } = about;
  const speaking = ({ run }) => ({ ...agent, name: agentOf(run.agent) || agent.name });
  const mine = (row) => Boolean(me) && row.message.author.id === me.id && !row.message.deleted;

  /** Whether the engine would: for who asked, and for the owner. */
  const mayStop = ({ target }) => me?.role === "administrator" || (Boolean(me) && rows.some(({ message }) => message.id === target && message.author.id === me.id));

  async function send(message) {
    const note = (state) => setSent((before) => [...before.filter((one) => one.id !== message.id), { ...message, ...state }]);
    note({});
    setCount((n) => n + 1);
    if (!atEnd) shown.newest();
    try {
      const { message: id } = await ask(`${path}/messages`, { method: "POST", body: wire(message) });
      note({ message: id });
      if (message.text?.startsWith("/") || rowsHave(id)) setSent((before) => before.filter((one) => one.id !== message.id));
    } catch (failure) {
      note({ why: failure.message });
    }
  }
  const rowsHave = (id) => rows.some((row) => row.message.id === id);
  const edit = (row, text) => ask(`${path}/messages/${encodeURIComponent(row.message.id)}/edit`, { method: "POST", body: { text } });
  const begin = { reply: (row) => (setEdited(null), setReply(row), composer.current?.focus()), edit: (row) => (setReply(null), setEdited(row)) };
  const last = () => [...rows].reverse().find((row) => mine(row) && textIn(row.message));

  return html`
    <div class="chat room" onDragOver=${(event) => event.preventDefault()}>
      <div class="middle">
        <${Head} shown=${shown} />
        <${Log} rows=${said} label=${t("place.log", { place: about.title })} earlier=${shown.earlier} noMore=${noMore} busy=${shown.busy} moving=${writing.length + sent.length} jump=${count}>
          ${said.map((row, at) => html`<${row.isLine ? Line : Message} key=${row.number} row=${row} before=${said[at - 1]} shown=${shown} mine=${mine(row)} begin=${begin} />`)}
          ${atEnd && writing.map((one) => html`<${Writing} key=${one.run.id} one=${one} agent=${speaking(one)} text=${texts[one.run.id]} path=${path} canStop=${mayStop(one.run)} />`)}
          ${sent.map((one) => html`<${OnItsWay} key=${one.id} one=${one} me=${me} again=${() => send(one)} drop=${() => setSent((before) => before.filter((other) => other !== one))} />`)}
          ${!said.length && !sent.length && !shown.busy && html`<${Empty}>${t(about.kind === "direct" ? "room.empty_direct" : "room.empty", { agent: speakersOf(about)[0].name })}<//>`}
        <//>
        ${shown.event !== null && html`<${Announcer} rows=${said} agent=${writing.length ? speaking(writing[0]).name : agent.name} runOf=${(row) => row.run_id} mine=${me?.id} />`}
        <p class="lost" role="status">${!error && !shown.isConnected ? t("room.lost") : ""}</p>
        ${!atEnd && html`<p class="lost"><button type="button" onClick=${shown.newest}>${t("place.newest")}</button></p>`}
        ${error ? html`<p class="closed">${t(error.status === 410 ? "room.ended" : "room.wrong_key")}</p>`
          : me ? html`<${Composer} key=${edited?.number ?? "new"} field=${composer} draft=${draft} path=${path} about=${about} reply=${reply} edited=${edited} send=${send} edit=${edit} last=${() => { const row = last(); if (row) begin.edit(row); }} leave=${() => (setReply(null), setEdited(null))} />`
          : session.peek()?.can_write ? html`<div class="closed"><${NameForm} room=${room} label=${t("room.join")} joined=${shown.read} /></div>`
          : html`<p class="closed">${t("place.nobody_sees")}</p>`}
      </div>
      <${Side} shown=${shown} room=${room} />
    </div>`;
}

/** A message as it goes up. */
const wire = ({ id, text, reply, media }) => ({
  id, ...(text ? { text } : {}), ...(reply ? { reply_to: reply.message.id } : {}), ...(media.length ? { media: media.map(({ file, name, voice }) => ({ file, name, ...(voice ? { voice } : {}) })) } : {}),
});

const Over = ({ error }) => html`
  <div class="login"><h1>${t({ 404: "room.nowhere", 410: "room.ended_title" }[error.status] || "room.not_here")}</h1>
    <p>${t({ 404: "room.wrong_key", 410: "room.ended" }[error.status] || "room.error", { why: error.message })}</p></div>`;

/** Who speaks in the room beside people. */
const speakersOf = (about) => (about.agents.length ? about.agents : [about.agent]);

function Head({ shown }) {
  const { query } = useSignal(address);
  const { about, people } = shown;
  return html`
    <header class="room-head">
      <h1 class="cut grow" dir="auto">${about.title}</h1>
      <button type="button" class="plain faces" aria-expanded=${query.people ? "true" : "false"} onClick=${() => setQuery({ people: query.people ? "" : "1" })}>
        ${[...people.filter((one) => one.here), ...people.filter((one) => !one.here)].slice(0, 4).map((one) => html`<${Avatar} key=${one.id} author=${one} />`)}
        ${speakersOf(about).map((one) => html`<${Avatar} key=${one.name} author=${{ ...one, persona: one.name }} />`)}<span class="hidden">${t("room.show_people", { n: people.length + speakersOf(about).length })}</span></button>
    </header>`;
}

const Line = ({ row, before }) => html`<${Said} one=${row} before=${before} own />`;

function Message({ row, before, shown, mine, begin }) {
  const { message, run_id: wrote, turns = [], reactions = [] } = row;
  const { about, path, runs } = shown;
  const own = message.author.id === shown.about.agent.id;
  const first = wrote && before?.run_id !== wrote; // of the messages of its run
  const run = first ? runs.find((one) => one.run.id === wrote) : null;
  const thoughts = first ? thoughtsOf(turns) : [];
  const me = about.me;
  const my = reactions.find((one) => one.person === me?.id)?.emojis || [];
  const counted = new Map();
  for (const one of reactions) for (const emoji of one.emojis) counted.set(emoji, [...(counted.get(emoji) || []), one.name]);
  const react = (emoji) => ask(`${path}/messages/${encodeURIComponent(message.id)}/reactions`, { method: "POST", body: { emojis: my.includes(emoji) ? my.filter((one) => one !== emoji) : [...my, emoji] } }).catch(() => {});
  const files = (part) => part.unique_id && api(`${path}/files/${encodeURIComponent(part.unique_id)}`);
  const keys = (event) => {
    if (!me || event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "r") event.preventDefault(), event.stopPropagation(), begin.reply(row);
  };
  return html`<${Said} one=${row} before=${before} own=${own} files=${files} tools=${run?.tools || []} thoughts=${thoughts} quoted=${toMessage} onKeyDown=${keys}
    below=${counted.size > 0 && html`<p class="reactions">${[...counted].map(([emoji, names]) => html`
      <button type="button" key=${emoji} class="chip" aria-pressed=${my.includes(emoji) ? "true" : "false"} disabled=${!me} title=${names.join(", ")} aria-label=${t("room.reacted", { emoji, n: names.length, names: names.join(", ") })} onClick=${() => react(emoji)}>${emoji} ${names.length}</button>`)}</p>`}
    tools_of=${me && !message.deleted && !shown.error && html`<${Tray} row=${row} mine=${mine} me=${me} path=${path} my=${my} react=${react} begin=${begin} />`} />`;
}

const toMessage = (id) => {
  const found = document.getElementById(`m-${id}`);
  found?.scrollIntoView({ block: "center" });
  found?.focus({ preventScroll: true });
};

/** What can be done with a message. */
function Tray({ row, mine, me, path, my, react, begin }) {
  const [open, setOpen] = useState(false);
  const remove = () => ask(`${path}/messages/${encodeURIComponent(row.message.id)}`, { method: "DELETE" });
  return html`
    <div class="tray ${open ? "open" : ""}" onKeyDown=${(event) => event.key === "Escape" && open && (event.stopPropagation(), setOpen(false))}>
      ${open && EMOJIS.map((emoji) => html`<button type="button" key=${emoji} class="plain icon-button" aria-pressed=${my.includes(emoji) ? "true" : "false"} aria-label=${t("room.react_with", { emoji })} onClick=${() => (setOpen(false), react(emoji))}>${emoji}</button>`)}
      <button type="button" class="plain icon-button" aria-expanded=${open ? "true" : "false"} aria-label=${t("room.react")} title=${t("room.react")} onClick=${() => setOpen(!open)}><${Icon} name="smile" /></button>
      <button type="button" class="plain icon-button" aria-label=${t("room.reply")} title=${t("room.reply")} onClick=${() => begin.reply(row)}><${Icon} name="reply" /></button>
      ${mine && textIn(row.message) && html`<button type="button" class="plain icon-button" aria-label=${t("room.edit")} title=${t("room.edit")} onClick=${() => begin.edit(row)}><${Icon} name="edit" /></button>`}
      ${(mine || me.id === "owner") && html`<${Act} label=${html`<${Icon} name="remove" /><span class="hidden">${t("room.delete")}</span>`} kind="bad plain icon-button" allowed carry=${remove} question=${t("room.delete_question")} confirm=${t("room.delete")} />`}
    </div>`;
}

function Writing({ one, agent, text, path, canStop }) {
  const { run, tools = [] } = one;
  const [now, setNow] = useState(Date.now());
  const [stopped, setStopped] = useState("");
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 100);
    return () => clearInterval(timer);
  }, []);
  const stop = () => ask(`${path}/stop`, { method: "POST" }).then(() => setStopped(t("room.stopping")), (error) => setStopped(error.message));
  return html`
    <article class="message flat" aria-label=${t("room.writes", { name: agent.name })}>
      <${Avatar} author=${{ ...agent, persona: agent.name }} />
      <div class="body">
        <p class="meta"><${Name} author=${agent} /><${Chip}>${t("agent")}<//><time>${clock(run.began_at)}</time></p>
        ${tools.map((tool) => html`<${ToolChip} key=${`${tool.step}.${tool.number}`} run=${tool} />`)}
        ${text ? html`<${LiveText} run=${run.id} text=${text}><i class="cursor" /><//>` : html`<p><i class="cursor" /></p>`}
        <p class="meta">${canStop && html`<button type="button" class="stop" onClick=${stop}><${Icon} name="stop" />${t("room.stop")}</button>`}
          <span>${stopped || t("room.writing", { time: Math.max(0, (now - new Date(run.began_at)) / 1000).toFixed(1) })}</span></p>
      </div>
    </article>`;
}

function OnItsWay({ one, me, again, drop }) {
  return html`
    <article class="message flat pending">
      <${Avatar} author=${me} />
      <div class="body"><p class="meta"><${Name} author=${me} /><span role="status">${one.why ? "" : t("room.sending")}</span></p>
        ${one.text && html`<p class="words" dir="auto">${one.text}</p>`}
        ${one.media.map((file) => html`<span key=${file.file} class="tool"><${Icon} name="file" />${file.name}</span>`)}
        ${one.why && html`<p class="bad" role="alert">${t("room.not_sent", { why: one.why })} <button type="button" onClick=${again}>${t("room.again")}</button> <button type="button" onClick=${drop}>${t("room.drop")}</button></p>`}
      </div>
    </article>`;
}

function Side({ shown, room }) {
  const { query } = useSignal(address);
  const { about, people, writing } = shown;
  const agent = about.agent;
  return html`
    <aside class="aside ${query.people ? "open" : ""}" aria-label=${t("room.people")}>
      <h2>${t("room.people")}<span class="count">${t("room.seats", { joined: people.length, seats: about.seats })}</span></h2>
      <ul class="people-list">
        ${people.map((one) => html`<li key=${one.id}><${Avatar} author=${one} /><span class="grow cut"><${Name} author=${one} />${one.id === about.me?.id ? html` <span class="muted">${t("room.you")}</span>` : ""}</span>${one.here && html`<span class="muted"><i class="dot ok" />${t("room.here")}</span>`}</li>`)}
        ${speakersOf(about).map((one) => html`<li key=${one.name}><${Avatar} author=${{ ...one, persona: one.name }} /><span class="grow cut"><${Name} author=${one} /></span>${writing.some(({ run }) => (agentOf(run.agent) || agent.name) === one.name) ? html`<${Chip} kind="accent">${t("room.is_writing")}<//>` : html`<${Chip}>${t("agent")}<//>`}</li>`)}
      </ul>
      ${session.peek()?.can_write && html`<h2>${t("room.link")}</h2><${LinkCard} room=${room} />`}
      <h2>${t("room.sees")}</h2>
      <p class="muted">${t(about.kind === "direct" ? "room.sees_direct" : about.agents.length > 1 ? "room.sees_several" : "room.sees_words", { agent: speakersOf(about).map((one) => one.name).join(", ") })}</p>
      <h2>${t("room.until")}</h2>
      <p class="muted">${about.ends_at ? when(about.ends_at) : ""}</p>
      ${session.peek()?.role !== "guest" && html`<p><a href=${to(`/p/${encodeURIComponent(`web.${room}`)}`)}>${t("room.inspect")}</a></p>`}
    </aside>`;
}
