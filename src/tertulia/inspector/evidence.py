"""What did it know? What was in the prompt of an answer and shares words with its sentences."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue, PromptRemoved
from tertulia.inspector.people import facts_shown
from tertulia.inspector.places import place_key
from tertulia.inspector.runs import recollections, tool_shown
from tertulia.inspector.shown import Blocked, Mask, as_json, only, shown_message, turn_text, words_of
from tertulia.inspector.values import Evidence, EvidenceKind, Known, MessageBrief
from tertulia.memory.retrieval.terms import split_sentences, terms, terms_with_words
from tertulia.messages import Message, Place
from tertulia.run.journal import Run, SentPrompt, ToolRun

_WINDOW = 120  # messages before an answer that are looked for in its prompt
_SAMPLE = 60  # characters by which a message is found there
_MOST = 8  # messages of the window for one sentence, and results of tools
_LONGEST = 600  # characters of a text


class _Piece(Struct, frozen=True, kw_only=True):
    """Something that was in the prompt; what was only in the window counts where it shares words."""

    kind: EvidenceKind
    id: str
    text: str
    why: str
    score: float | None = None
    place_key: str | None = None
    message_id: str | None = None
    source: MessageBrief | None = None
    in_window: bool = False


async def known(store: StoreProtocol, place: Place, message_id: str) -> Known:
    """Return what was known when a message was written, for each of its sentences."""
    blocked = await store.inspection.blocked()
    found = await store.log.find(place, [message_id])
    if not found:
        raise InvalidValue(f"there is no message {message_id:.100} in {place_key(place):.100}")
    message = shown_message(found[0][1], blocked)
    logged = only(await store.inspection.messages(place, ids=[found[0][1].id], most=1))
    run_id = logged.delivery.run if logged.delivery else None
    nothing = Known(message=message, run_id=run_id, sentences=(), evidence=(), window=0)
    if run_id is None:
        return replace(nothing, why_nothing="no run of the bot wrote it")
    try:
        sent = await store.prompts.sent_by(run_id)
    except PromptRemoved as error:
        return replace(nothing, why_nothing=str(error))
    summary = only(await store.inspection.runs(ids=[run_id], most=1))
    window = await _window(store, summary.run, sent, blocked)
    recalled = await _recalled(store, run_id, blocked)
    mask = Mask(await store.place_settings.delimiter(place))
    tools = [tool_shown(tool, mask) for tool in (await store.inspection.tools([run_id])).get(run_id, ())]
    pieces = [*recalled, *map(_tool_piece, tools[-_MOST:]), *map(_window_piece, window)]
    sentences = tuple(split_sentences(words_of(message)))
    shown = Known(
        message=message,
        run_id=run_id,
        sentences=sentences,
        evidence=tuple(tuple(evidence(sentence, pieces)) for sentence in sentences),
        window=len(window),
    )
    if recalled or tools:
        return shown
    why = f"nothing was recalled for this; the model had the last {len(window)} messages and its instruction"
    return replace(shown, why_nothing=why)


async def _recalled(store: StoreProtocol, run_id: str, blocked: Blocked) -> list[_Piece]:
    shown = await recollections(store, run_id, blocked)
    facts = await store.inspection.facts([one.thing.id for one in shown if one.thing.kind == "fact"])
    said = {one.fact.id: one.sources for one in await facts_shown(store, facts.values(), blocked)}
    pieces = []
    for one in shown:
        thing, fact = one.thing, facts.get(one.thing.id)
        first = fact.sources[0] if fact and fact.sources else None
        pieces.append(
            _Piece(
                kind=thing.kind,
                id=thing.id,
                text=one.text,
                why=thing.why,
                score=fact.confidence if fact else thing.score,
                place_key=place_key(fact.place) if fact else one.place_key,
                message_id=thing.id if thing.kind == "message" else first,
                source=next(iter(said.get(thing.id, ())), None),
            )
        )
    return pieces


async def _window(store: StoreProtocol, run: Run, sent: Sequence[SentPrompt], blocked: Blocked) -> list[Message]:
    """Return the last messages before a run whose words were in its prompt."""
    if not sent:
        return []
    layers = sent[-1].prompt.layers
    texts = [text for layer in layers for text in (layer.instruction, *map(turn_text, layer.turns))]
    prompt = "\n".join(texts)
    logged = await store.inspection.messages(run.place, before=run.horizon, most=_WINDOW)
    messages = (shown_message(one.message, blocked) for one in logged)
    return [one for one in messages if (text := words_of(one).strip()) and text[:_SAMPLE] in prompt]


def _window_piece(message: Message) -> _Piece:
    return _Piece(
        kind="message",
        id=message.id,
        text=f"{message.author.name}: {words_of(message)}",
        why="it was in the window",
        place_key=place_key(message.place),
        message_id=message.id,
        in_window=True,
    )


def _tool_piece(tool: ToolRun) -> _Piece:
    result = as_json(tool.result.value) if tool.result else "no result"
    text = f"{tool.call.name}({as_json(tool.call.args)}) → {result}"
    return _Piece(kind="tool", id=f"{tool.step}.{tool.number}", text=text, why=f"it ran after request {tool.step + 1}")


def evidence(sentence: str, pieces: Iterable[_Piece]) -> list[Evidence]:
    """Return what was in the prompt beside a sentence, that which shares most words first."""
    words = terms_with_words(sentence)
    found: list[tuple[_Piece, tuple[str, ...]]] = []
    for piece in pieces:
        said = set(terms(piece.text))
        shared = tuple(word for term, word in words.items() if term in said)
        if shared or not piece.in_window:
            found.append((piece, shared))
    ranked = sorted(found, key=lambda one: -len(one[1]))
    recalled = [one for one in ranked if not one[0].in_window]
    window = [one for one in ranked if one[0].in_window][:_MOST]
    return [_evidence(piece, shared) for piece, shared in (*recalled, *window)]


def _evidence(piece: _Piece, shared: tuple[str, ...]) -> Evidence:
    return Evidence(
        kind=piece.kind,
        id=piece.id,
        text=piece.text[:_LONGEST],
        score=piece.score,
        why=piece.why,
        shared=shared,
        place_key=piece.place_key,
        message_id=piece.message_id,
        source=piece.source,
    )
