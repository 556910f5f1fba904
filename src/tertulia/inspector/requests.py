"""Requests: their bodies as they went over the wire, what was checked, and how to send them again."""

from collections.abc import Iterator, Sequence
from pprint import pformat
from shlex import quote
from typing import Any

import orjson

from tertulia.engine.limits import StoredCall
from tertulia.engine.rebuilt_request import RebuiltRequest, rebuild_request
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.inspector.runs import MOST_CALLS, find_run
from tertulia.inspector.shown import MASK, Mask
from tertulia.inspector.values import Check, RequestShown
from tertulia.models.calls import Call
from tertulia.models.gemini.client import BASE_URL
from tertulia.models.openai.vendors import OPENAI
from tertulia.redaction import redact_keys
from tertulia.turns import Record
from tertulia.wire.lint import lint

_SIGNATURES = frozenset({"thoughtSignature", "thought_signature", "signature", "encrypted_content"})
_CONTENTS = frozenset({"data", "url", "image_url", "file_data"})  # fields that may hold the bytes of a file
_MOST_CONTENT = 2_000  # characters of these that are shown

_TEST = '''"""A request as Tertulia sent it, in step {step} of run {run}."""

from tertulia.wire import lint

REQUEST = {request}


def test_the_service_takes_the_request() -> None:
    assert lint(REQUEST, model={model!r}) == []
'''


async def requests(store: StoreProtocol, given: str, step: int, *, unmasked: bool = False) -> tuple[RequestShown, ...]:
    """Return the requests of a step of the run whose id begins with *given*, each try as one."""
    run_id = await find_run(store, given)
    sent = await store.prompts.sent(run_id, step)
    journal = await store.runs.journal(run_id)
    if sent is None or journal is None:
        raise InvalidValue(f"run {given:.100} has no step {step}")
    delimiter = "" if unmasked else await store.place_settings.delimiter(journal.run.place)
    calls = [one for one in await store.usage.calls(run=run_id, most=MOST_CALLS) if one.call.step == step]
    answers = _answers([record for of, record in journal.records if of == step], calls)
    return tuple(
        [
            _shown(one.call, await rebuild_request(store, sent, one), answer, Mask(delimiter))
            for one, answer in zip(calls, answers, strict=True)
        ]
    )


def _answers(records: Sequence[Record], calls: Sequence[StoredCall]) -> Iterator[Any]:
    """Yield the response to each call, as the service sent it; None to one without."""
    raws = iter([record.raw for record in records if record.turn.role == "model"])
    for stored in calls:
        yield next(raws, None) if stored.call.status == "answered" else None


def _shown(call: Call, rebuilt: RebuiltRequest, answer: Any, mask: Mask) -> RequestShown:
    body = shown_body(rebuilt.body, mask) if rebuilt.body else None
    text = "" if body is None else orjson.dumps(body).decode()
    url = _url(call)
    return RequestShown(
        call=call,
        body=text,
        checks=tuple(_checks(call, rebuilt)),
        response="" if answer is None else orjson.dumps(_safe(answer, mask)).decode(),
        url=url,
        curl="" if body is None else _curl(call, url, text),
        pytest="" if body is None else _test(call, body),
    )


def _checks(call: Call, rebuilt: RebuiltRequest) -> Iterator[Check]:
    """Yield whether the body is the one that was sent, what the service would refuse, and what was repaired."""
    size = f", {len(rebuilt.body):,} bytes" if rebuilt.body else ""
    yield Check(ok=rebuilt.is_same, what=f"rebuilt from the store, {rebuilt.why}{size}")
    if rebuilt.body:
        violations = lint(rebuilt.body, model=call.model)
        for one in violations:
            yield Check(ok=False, what=f"lint: {one.where or 'request'}: {one.message.strip()}")
        if not violations:
            yield Check(ok=True, what="lint: nothing to refuse")
    receipts = call.request.receipts if call.request else ()
    for receipt in receipts:
        yield Check(ok=True, what=f"repair: {receipt.where}: {receipt.action}")
    if call.request and not receipts:
        yield Check(ok=True, what="repair: nothing changed")


def shown_body(body: bytes, mask: Mask) -> Any:
    """Return the JSON of a request as it is shown."""
    return _safe(orjson.loads(body), mask)


def _safe(value: Any, mask: Mask, name: str = "") -> Any:
    """Return a JSON value without signatures, keys, marks and the bytes of files."""
    match value:
        case dict():
            return {field: _safe(one, mask, field) for field, one in value.items()}
        case list():
            return [_safe(one, mask, name) for one in value]
        case str() if name in _SIGNATURES:
            return MASK
        case str() if name in _CONTENTS and len(value) > _MOST_CONTENT:
            return f"({len(value):,} characters)"
        case str():
            return redact_keys(mask.text(value))
    return value


def _url(call: Call) -> str:
    """Return the address that the service of a call has by default."""
    request = call.request
    if request is None or not request.wire:
        return ""
    if request.wire == "gemini":
        model = call.model.removeprefix("models/")
        return f"{BASE_URL}/v1beta/models/{model}:" + (
            "streamGenerateContent?alt=sse" if request.streamed else "generateContent"
        )
    return f"{(request.vendor and request.vendor.base_url) or OPENAI.base_url}/chat/completions"


def _curl(call: Call, url: str, body: str) -> str:
    """Return a command for a shell, which takes the key from its environment."""
    is_gemini = call.request is not None and call.request.wire == "gemini"
    header = "x-goog-api-key: $GEMINI_API_KEY" if is_gemini else "authorization: Bearer $OPENAI_API_KEY"
    return f"curl -sS {quote(url)} \\\n  -H 'content-type: application/json' -H \"{header}\" \\\n  --data {quote(body)}"


def _test(call: Call, body: Any) -> str:
    return _TEST.format(
        step=call.step, run=call.run, request=pformat(body, width=110, sort_dicts=False), model=call.model
    )
