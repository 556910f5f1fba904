// Where a message of a room is written: words, files by choice, drop and paste, the microphone; replies and edits.
import { bytes, html, reach, session, t, textOf, useEffect, useRef, useState } from "./core.js";
import { Icon } from "./parts.js";
import { plain } from "./text.js";

const TALLEST = 220; // pixels
const SOUND = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];

const wordsOf = (row) => textOf((row.message.parts || []).filter((part) => part.kind === "text"));

export function Composer({ field, draft, path, about, reply, edited, send, edit, last, leave }) {
  const [text, setText] = useState(edited ? wordsOf(edited) : draft.current);
  const [files, setFiles] = useState([]); // each with its name, and `file` once it is up
  const [why, setWhy] = useState("");
  const choose = useRef(null);
  const sound = useSound((file) => add([file], { voice: true }), setWhy);
  const limit = about.text;

  useEffect(() => {
    if (!edited) draft.current = text;
    const box = field.current;
    box.style.height = "auto";
    box.style.height = `${Math.min(TALLEST, box.scrollHeight)}px`;
  }, [text]);
  useEffect(() => {
    if (edited || matchMedia("(pointer: fine)").matches) field.current.focus();
  }, []);
  useEffect(() => {
    const chat = field.current.closest(".chat");
    const dropped = (event) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      add([...event.dataTransfer.files]);
    };
    chat.addEventListener("drop", dropped);
    return () => chat.removeEventListener("drop", dropped);
  });

  /** Upload files at once; they go with the message. */
  function add(given, { voice = false } = {}) {
    if (edited) return;
    setWhy("");
    const room = about.may_upload.per_message - files.length;
    if (given.length > room) setWhy(t("room.too_many", { n: about.may_upload.per_message }));
    for (const file of given.slice(0, Math.max(0, room))) {
      const key = crypto.randomUUID();
      const name = file.name || t("room.pasted");
      const note = (state) => setFiles((before) => before.map((one) => (one.key === key ? { ...one, ...state } : one)));
      setFiles((before) => [...before, { key, name, voice, size: file.size }]);
      if (file.size > about.may_upload.bytes) {
        note({ why: t("room.too_large", { size: bytes(about.may_upload.bytes) }) });
        continue;
      }
      upload(path, file).then((found) => note({ file: found.file, kind: found.kind }), (error) => note({ why: error.message }));
    }
  }

  const isReady = (text.trim() || files.some((one) => one.file)) && text.length <= limit && files.every((one) => one.file || one.why);

  async function go(event) {
    event?.preventDefault();
    if (!isReady) return;
    if (edited) {
      try {
        if (text !== wordsOf(edited)) await edit(edited, text.trim());
        leave();
      } catch (error) {
        setWhy(error.message);
      }
      return;
    }
    send({ id: crypto.randomUUID(), text: text.trim(), reply, media: files.filter((one) => one.file) });
    setText("");
    setFiles([]);
    setWhy("");
    leave();
    field.current.focus();
  }

  /** Begin with the name of an agent, who is meant by that. */
  function call(name) {
    if (!text.includes(name)) setText(`${name}, ${text}`);
    field.current.focus();
  }

  function pressed(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) go(event);
    else if (event.key === "ArrowUp" && !text && !edited) event.preventDefault(), last();
    else if (event.key === "Escape" && (reply || edited)) event.stopPropagation(), leave();
  }

  return html`
    <form class="composer" onSubmit=${go} aria-label=${t(edited ? "room.edit" : "room.write")}>
      ${(reply || edited) && html`<p class="above"><${Icon} name=${edited ? "edit" : "reply"} /><span class="grow cut" dir="auto">${edited ? t("room.editing") : html`<b>${reply.message.author.name}</b> ${plain(wordsOf(reply)) || t("message.media")}`}</span>
        <button type="button" class="plain icon-button" aria-label=${t("act.leave")} onClick=${leave}><${Icon} name="close" /></button></p>`}
      <label><span class="hidden">${t("room.write")}</span>
        <textarea ref=${field} rows="1" value=${text} maxlength=${limit} dir="auto" placeholder=${t(about.kind === "direct" ? "room.write" : "room.placeholder", { agent: (about.agents[0] || about.agent).name })}
          onInput=${(event) => setText(event.target.value)} onKeyDown=${pressed}
          onPaste=${(event) => event.clipboardData.files.length && (event.preventDefault(), add([...event.clipboardData.files]))} /></label>
      ${files.length > 0 && html`<ul class="files">${files.map((one) => html`
        <li key=${one.key} class="tool ${one.why ? "bad" : ""}"><${Icon} name=${one.voice ? "mic" : "file"} /><span class="cut">${one.name}</span><span class="muted" role="status">${one.why || (one.file ? bytes(one.size) : t("room.uploading"))}</span>
          <button type="button" class="plain icon-button" aria-label=${t("room.remove_file", { name: one.name })} onClick=${() => setFiles(files.filter((other) => other !== one))}><${Icon} name="close" /></button></li>`)}</ul>`}
      ${why && html`<p class="bad" role="alert">${why}</p>`}
      ${about.agents.length > 1 && !edited && html`<p class="chips" role="group" aria-label=${t("room.whom")}>${about.agents.map((one) => html`
        <button key=${one.name} type="button" class="chip" onClick=${() => call(one.name)}>${one.name}</button>`)}</p>`}
      <div class="row">
        ${!edited && html`
          <input ref=${choose} type="file" multiple hidden onChange=${(event) => (add([...event.target.files]), (event.target.value = ""))} />
          <button type="button" class="plain icon-button" aria-label=${t("room.attach")} title=${t("room.attach")} onClick=${() => choose.current.click()}><${Icon} name="clip" /></button>
          ${sound.can && html`<button type="button" class="plain icon-button ${sound.since ? "recording" : ""}" aria-pressed=${sound.since ? "true" : "false"} aria-label=${t(sound.since ? "room.record_end" : "room.record")} title=${t(sound.since ? "room.record_end" : "room.record")} onClick=${sound.toggle}><${Icon} name=${sound.since ? "stop" : "mic"} /></button>`}
          ${sound.since && html`<span class="bad" role="timer">${t("room.recording", { time: sound.seconds })}</span><button type="button" onClick=${sound.cancel}>${t("room.drop")}</button>`}`}
        <span class="grow" />
        <span class="note cut">${t("room.as", { name: about.me.name })}</span>
        <button type="submit" class="solid" disabled=${!isReady}>${t(edited ? "room.save" : "room.send")}</button>
      </div>
    </form>`;
}

async function upload(path, file) {
  const response = await reach(`${path}/files`, { method: "POST", credentials: "same-origin", headers: { "content-type": file.type || "application/octet-stream" }, body: file });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) session.value = null;
  if (!response.ok) throw new Error(answer.error || response.statusText);
  return answer;
}

/** The microphone, while its button is pressed in. */
function useSound(done, failed) {
  const [since, setSince] = useState(null);
  const [now, setNow] = useState(0);
  const recorder = useRef(null);
  useEffect(() => {
    if (!since) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, [since]);
  useEffect(() => () => recorder.current?.stream.getTracks().forEach((track) => track.stop()), []);

  async function begin() {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      const mimeType = SOUND.find((type) => MediaRecorder.isTypeSupported(type));
      const pieces = [];
      recorder.current = new MediaRecorder(stream, mimeType ? { mimeType } : {});
      recorder.current.ondataavailable = (event) => pieces.push(event.data);
      recorder.current.onstop = () => {
        stream.getTracks().forEach((track) => track.stop());
        const type = recorder.current.mimeType.split(";")[0];
        if (!recorder.current.dropped && pieces.length) done(new File(pieces, `${t("media.voice")}.${type.split("/")[1]}`, { type }));
        setSince(null);
      };
      recorder.current.start();
      setSince(Date.now());
      setNow(Date.now());
    } catch (error) {
      failed(t("room.no_microphone", { why: error.message }));
    }
  }
  const end = (dropped) => {
    recorder.current.dropped = dropped;
    recorder.current.stop();
  };
  return {
    can: Boolean(navigator.mediaDevices?.getUserMedia && window.MediaRecorder),
    since, seconds: since ? Math.max(0, Math.round((now - since) / 1000)) : 0,
    toggle: () => (since ? end(false) : begin()), cancel: () => end(true),
  };
}
