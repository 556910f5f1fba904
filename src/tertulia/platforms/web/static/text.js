// Texts: Markdown, as the server parses it for every platform, drawn as elements. Nothing in it becomes markup.
import { h } from "./vendor/preact.js";
import { ask, base, html, session, signal, t, to, useEffect, useRef, useState } from "./core.js";
import { Copy } from "./parts.js";

const KEPT = 2_000; // texts
const AT_ONCE = [60, 20_000]; // texts and characters of one request
const OFTEN = 250; // milliseconds between two looks at a text that is being written
const MARKED = /[\\`*_~#|[\]&<>\n\t]|:\/\/|^\s*(?:[-+=]|\d+[.)])|^ {4}/; // what has none of these is one paragraph
const LINK = /^(?:https?:\/\/|mailto:)/i;
const TAGS = new Set(["p", "ul", "ol", "li", "blockquote", "table", "tr", "th", "td", "hr", "strong", "em", "s", "code", "br"]);

const known = new Map();

/** The words of what is being written, by its run, as far as they are parsed. */
export const heard = signal({});

const treeOf = (text) => known.get(text) ?? (MARKED.test(text) ? undefined : [{ tag: "p", inside: [text] }]);

/** Ask for the trees of texts that are not known yet. */
export async function readTexts(texts) {
  const missing = [...new Set(texts)].filter((text) => text && !treeOf(text));
  while (missing.length) {
    const piece = [missing.shift()];
    while (missing.length && piece.length < AT_ONCE[0] && piece.join("").length + missing[0].length < AT_ONCE[1]) piece.push(missing.shift());
    const trees = await ask(to("/texts", { room: session.peek()?.room }).slice(base.length), { method: "POST", body: { texts: piece } });
    piece.forEach((text, at) => known.set(text, trees[at]));
    while (known.size > KEPT) known.delete(known.keys().next().value);
  }
}

/** The words of a text without its markup. */
export const plain = (text) => wordsIn(treeOf(text) || [text]).trim();
const wordsIn = (inside = []) =>
  inside.map((one) => (typeof one === "string" ? one : one.tag === "br" ? "\n" : wordsIn(one.inside) + (/^(?:p|heading|li|pre|t[rdh])$/.test(one.tag) ? "\n" : ""))).join("");

export function Text({ text }) {
  const [, again] = useState(0);
  const tree = treeOf(text);
  useEffect(() => void (tree || readTexts([text]).then(() => again((n) => n + 1), () => {})), [text]);
  return html`<div class="text" dir="auto">${tree ? draw(tree) : html`<p class="words">${text}</p>`}</div>`;
}

/** A text that is being written: as it stood a moment ago, so that its markup is whole. */
export function LiveText({ run, text, children }) {
  const [shown, setShown] = useState(text);
  const wanted = useRef(text);
  wanted.current = text;
  useEffect(() => {
    let timer = 0;
    const look = async () => {
      const now = wanted.current;
      await readTexts([now]).catch(() => {});
      setShown(now);
      if (treeOf(now)) heard.value = { ...heard.peek(), [run]: plain(now) };
      timer = setTimeout(look, OFTEN);
    };
    look();
    return () => clearTimeout(timer);
  }, []);
  const tree = text.startsWith(shown) ? treeOf(shown) : undefined;
  return html`<div class="text live" dir="auto" aria-live="off">${tree ? draw(tree) : html`<p class="words">${text}</p>`}${children}</div>`;
}

const draw = (inside = []) => inside.map((one, at) => (typeof one === "string" ? one : element(one, at)));

function element({ tag, inside, href, start, language }, key) {
  switch (tag) {
    case "a": return LINK.test(href) ? html`<a key=${key} href=${href} target="_blank" rel="noopener noreferrer">${draw(inside)}</a>` : draw(inside);
    case "heading": return html`<p key=${key}><strong>${draw(inside)}</strong></p>`;
    case "pre": return html`<div key=${key} class="code"><p class="meta"><span class="grow">${language}</span><${Copy} text=${inside.join("")} label=${t("copy")} /></p><pre tabindex="0"><code>${inside}</code></pre></div>`;
    case "table": return html`<div key=${key} class="scroll" tabindex="0" role="region" aria-label=${t("table")}><table><tbody>${draw(inside)}</tbody></table></div>`;
    default: return TAGS.has(tag) ? h(tag, { key, start: tag === "ol" ? start : undefined }, inside && draw(inside)) : draw(inside);
  }
}
