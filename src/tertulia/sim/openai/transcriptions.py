"""Transcriptions: the form of a request with a sound, what is refused of it, and the answer. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from tertulia.sim.errors import Wire
from tertulia.sim.multipart import Upload, read_multipart
from tertulia.sim.openai.errors import INVALID, OpenAIRefusal, mistyped, refusal

TRANSCRIBERS = ("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe")
MAX_FORM = 26_214_400  # bytes
_SUFFIXES = "flac m4a mp3 mp4 mpeg mpga oga ogg wav webm".split()
_FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
_BYTES_OF_A_SECOND = 4_000  # about what a voice of a messenger has
_FIELDS = {
    "model", "language", "prompt", "response_format", "temperature", "stream", "include[]", "chunking_strategy",
    "timestamp_granularities[]",
}  # fmt: skip
_BEGINNINGS = (  # of the contents that the formats have; the frames of an MP3 begin with eleven bits
    b"fLaC", b"ID3", b"OggS", b"RIFF", b"\x1aE\xdf\xa3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\x00\x00\x01\xba",
)  # fmt: skip


class Form(Struct, frozen=True):
    """A request to transcribe."""

    fields: Mapping[str, str]
    file: Upload | None

    @property
    def model(self) -> str:
        return self.fields.get("model", "")


def read_form(content_type: str, body: bytes) -> Form | None:
    """Return the form of a request; None if the body is none."""
    is_form = content_type.lower().startswith("multipart/form-data")
    found = read_multipart(content_type, body) if is_form else None
    return None if found is None else Form(found[0], found[1].get("file"))


def refused_form(size: int) -> OpenAIRefusal | None:
    """Return the refusal of a request with so many bytes, if they are too many."""
    if size <= MAX_FORM:
        return None
    text = f"Maximum content size limit ({MAX_FORM}) exceeded ({size} bytes read)"
    return OpenAIRefusal("file-size", 413, text, "server_error", None, None)


def check_form(form: Form, *, strict: bool) -> OpenAIRefusal | None:
    """Return what is refused of a form whose model is served."""
    fields, file = form.fields, form.file
    if unknown := sorted(set(fields) - _FIELDS) if strict else []:
        return refusal("parameter", f"Unrecognized request argument supplied: {unknown[0]}")
    if file is None:
        text = "1 validation error for Request\nbody -> file\n  field required (type=value_error.missing)"
        return refusal("file", text)
    if file.name.rpartition(".")[2].lower() not in _SUFFIXES or (strict and not _is_sound(file.data)):
        return refusal("file-format", f"Invalid file format. Supported formats: {_SUFFIXES}")
    language = fields.get("language", "")
    if language and not re.fullmatch(r"[a-z]{2}", language):
        text = f"Invalid language '{language}'. Language parameter must be specified in ISO-639-1 format."
        return refusal("language", text, param="language", code="invalid_language_format")
    shape = fields.get("response_format", "json")
    if shape not in _FORMATS:
        return mistyped("response_format")
    if form.model != "whisper-1" and shape not in ("json", "text"):
        text = f"response_format '{shape}' is not compatible with model '{form.model}'. Use 'json' or 'text' instead."
        return OpenAIRefusal("response-format", 400, text, INVALID, "response_format", "unsupported_value")
    return None


def _is_sound(data: bytes) -> bool:
    return data.startswith(_BEGINNINGS) or data[4:8] == b"ftyp"


def transcription_of(form: Form, file: Upload, transcribe: Callable[[bytes], str]) -> Wire | str:
    """Return the answer: an object, or the text alone where that was asked for."""
    text, seconds = transcribe(file.data), max(1, len(file.data) // _BYTES_OF_A_SECOND)
    shape = form.fields.get("response_format", "json")
    if shape == "text":
        return f"{text}\n"
    usage: dict[str, Any] = {"type": "duration", "seconds": seconds}
    if form.model != "whisper-1":
        usage = {"type": "tokens", "input_tokens": 10 * seconds, "output_tokens": len(text) // 4 + 1}
        usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    answer: Wire = {"text": text, "usage": usage}
    if shape == "verbose_json":
        answer |= {"task": "transcribe", "language": "english", "duration": float(seconds), "segments": []}
    return answer


def spoken_length(data: bytes) -> str:
    """Return what a sound says where a test does not decide it: something that depends on its bytes."""
    return f"You hear {len(data):,} bytes of sound."
