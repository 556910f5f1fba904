"""The seventeen scenarios of a message and what it refers to: what goes in, and the one message that comes out."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

from tertulia.messages import Author, Message, Quote
from tertulia.parts import Media, Part, Text

SITE = "https://example.com"


class Scenario(NamedTuple):
    number: str
    content: Any
    said: str | list[dict[str, Any]]
    personality: str = "albert-einstein"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(name: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"{SITE}/{name}"}}


def audio(name: str) -> dict[str, Any]:
    return {"type": "audio_url", "audio_url": {"url": f"{SITE}/{name}"}}


def message_of(scenario: Scenario, *, site: str = SITE, own: str = "own", **fields: Any) -> Message:
    """The message of a scenario as a platform gives it, its media at another *site*; *own* is the agent's account."""
    content = scenario.content if isinstance(scenario.content, dict) else {"messageContent": scenario.content}
    said, reference = content["messageContent"], content.get("referencedMessage")
    me = Author(id="me", name=content.get("userName", "Ann"))
    quote = None
    if reference:
        author = Author(id="other", name=reference.get("displayName", reference["author"]))
        if reference["isFromBot"]:
            persona = reference["personalityName"]
            author = Author(id=own if persona == scenario.personality else "b", name=author.name, persona=persona)
        elif reference["author"] == content.get("userName"):
            author = me
        quote = Quote(message_id="m0", author=author, parts=tuple(_quoted_parts(reference["content"], site)))
    parts = tuple(_part(item, site) for item in ([said] if isinstance(said, str) else said))
    return Message(author=me, reply_to=quote, parts=parts, **fields)


def _part(item: Any, site: str) -> Part:
    if isinstance(item, str) or item["type"] == "text":
        return Text(text=item if isinstance(item, str) else item["text"])
    return _media("photo" if item["type"] == "image_url" else "audio", item[item["type"]]["url"], site)


def _quoted_parts(words: str, site: str) -> Iterator[Part]:
    """The text of a quote, and its markers as the media they stand for."""
    found = re.findall(r"\[(Image|Audio): ([^\]]+)\]", words)
    yield Text(text=re.sub(r"\[(Image|Audio): [^\]]+\]", "", words).strip() if found else words)
    kinds = {"Image": "photo", "Audio": "audio"}
    yield from (_media(kinds[kind], url, site) for kind, url in found)


def _media(kind: str, url: str, site: str) -> Media:
    uri = url.replace(SITE, site)
    return Media(media_kind=kind, unique_id=uri, uri=uri)


def odd_characters(value: Any) -> set[str]:
    """The control characters and halves of characters anywhere in JSON."""
    match value:
        case str():
            return {one for one in value if unicodedata.category(one) in {"Cc", "Cs"}} - set("\n\t\r")
        case dict():
            return odd_characters([*value.keys(), *value.values()])
        case list():
            return {odd for item in value for odd in odd_characters(item)}
    return set()


def replying(message: Any, content: str, author: str, **more: str) -> dict[str, Any]:
    reference = {"content": content, "author": author, "isFromBot": False}
    return {"messageContent": message, "referencedMessage": reference, **more}


def replying_to_einstein(message: str, content: str) -> dict[str, Any]:
    reference = {
        "content": content,
        "author": "Albert Einstein",
        "isFromBot": True,
        "personalityName": "albert-einstein",
        "displayName": "Albert Einstein",
    }
    return {"messageContent": message, "referencedMessage": reference}


SCENARIOS = [
    Scenario("1.1", "Hello, how are you today?", "Hello, how are you today?"),
    Scenario(
        "1.2",
        [text("What do you see in this image?"), image("image.jpg")],
        [text("What do you see in this image?"), image("image.jpg")],
    ),
    Scenario(
        "1.3",
        [text("Please transcribe this audio"), audio("audio.mp3")],
        [text("Please transcribe this audio"), audio("audio.mp3")],
    ),
    Scenario(
        "1.4",
        [text("Compare this image and audio"), image("image.jpg"), audio("audio.mp3")],
        [text("Compare this image and audio"), image("image.jpg"), audio("audio.mp3")],
    ),
    Scenario(
        "2.1",
        replying(
            "What do you think about this opinion?", "I believe AI will transform society in profound ways.", "SomeUser"
        ),
        [
            text(
                "What do you think about this opinion?\n"
                'SomeUser said:\n"I believe AI will transform society in profound ways."'
            )
        ],
    ),
    Scenario(
        "2.2",
        replying_to_einstein(
            "Can you elaborate on that point?", "The concept of emergence is fascinating in complex systems."
        ),
        [
            text(
                "Can you elaborate on that point?\n"
                'You said earlier: "The concept of emergence is fascinating in complex systems."'
            )
        ],
    ),
    Scenario(
        "2.3",
        replying_to_einstein("What do you think about Einstein's view?", "Time is relative to the observer."),
        [
            text(
                "What do you think about Einstein's view?\n"
                'Albert Einstein (albert-einstein) said: "Time is relative to the observer."'
            )
        ],
        personality="isaac-newton",
    ),
    Scenario(
        "3.1",
        replying(
            "What can you tell me about this image?",
            "Check out this picture [Image: https://example.com/image.jpg]",
            "ImageUser",
        ),
        [
            text(
                "What can you tell me about this image?\n"
                "This is a message referencing a message with an image from ImageUser. ImageUser said:\n"
                '"Check out this picture"'
            ),
            image("image.jpg"),
        ],
    ),
    Scenario(
        "3.2",
        replying(
            "Let me try this again with better context:",
            "[Audio Message] [Audio: https://example.com/my-audio.mp3]",
            "CurrentUser",
            userName="CurrentUser",
        ),
        [
            text(
                "Let me try this again with better context:\n"
                'This is a message referencing a message with audio from me. I said:\n"[Audio Message]"'
            ),
            audio("my-audio.mp3"),
        ],
    ),
    Scenario(
        "4.1",
        replying(
            [text("This image relates to the audio. What do you think?"), image("my-image.jpg")],
            "Listen to this recording [Audio: https://example.com/audio.mp3]",
            "AudioUser",
        ),
        [
            text(
                "This image relates to the audio. What do you think?\n"
                "This is a message referencing a message with audio from AudioUser. AudioUser said:\n"
                '"Listen to this recording"'
            ),
            image("my-image.jpg"),
            audio("audio.mp3"),
        ],
    ),
    Scenario(
        "4.2",
        replying(
            [text("My audio response to your image"), audio("my-audio.mp3")],
            "Check this out [Image: https://example.com/image.jpg]",
            "ImageUser",
        ),
        [
            text(
                "My audio response to your image\n"
                "This is a message referencing a message with an image from ImageUser. ImageUser said:\n"
                '"Check this out"'
            ),
            audio("my-audio.mp3"),
            image("image.jpg"),
        ],
    ),
    Scenario(
        "4.3",
        replying(
            [
                text("Here is my multimodal response to your content"),
                image("response-image.jpg"),
                audio("response-audio.mp3"),
            ],
            "Mixed content: [Image: https://example.com/original-image.jpg] and "
            "[Audio: https://example.com/original-audio.mp3]",
            "MediaUser",
        ),
        [
            text(
                "Here is my multimodal response to your content\n"
                "This is a message referencing a message with audio from MediaUser. MediaUser said:\n"
                '"Mixed content:  and"'
            ),
            image("response-image.jpg"),
            audio("response-audio.mp3"),
            audio("original-audio.mp3"),
        ],
    ),
    Scenario(
        "5.1",
        replying(
            "Actually, let me clarify that point",
            "I think AI has some limitations we should consider.",
            "CurrentUser",
            userName="CurrentUser",
        ),
        [text('Actually, let me clarify that point\nI said:\n"I think AI has some limitations we should consider."')],
    ),
    Scenario(
        "5.2",
        replying(
            "Let me add more context to this audio",
            "[Audio Message] [Audio: https://example.com/my-recording.mp3]",
            "CurrentUser",
            userName="CurrentUser",
        ),
        [
            text(
                "Let me add more context to this audio\n"
                'This is a message referencing a message with audio from me. I said:\n"[Audio Message]"'
            ),
            audio("my-recording.mp3"),
        ],
    ),
    Scenario(
        "6.1", replying("What was that about?", "", "SomeUser"), [text('What was that about?\nSomeUser said:\n""')]
    ),
    Scenario(
        "6.2",
        replying("Interesting file", "[Image: https://example.com/image.jpg]", "MediaUser"),
        [
            text(
                "Interesting file\n"
                'This is a message referencing a message with an image from MediaUser. MediaUser said:\n"[Image]"'
            ),
            image("image.jpg"),
        ],
    ),
    Scenario(
        "6.3",
        replying(
            "Tell me about all this content",
            "Here's everything: [Image: https://example.com/img1.jpg] some text "
            "[Audio: https://example.com/audio.mp3] more text [Image: https://example.com/img2.jpg]",
            "MediaUser",
        ),
        [
            text(
                "Tell me about all this content\n"
                "This is a message referencing a message with audio from MediaUser. MediaUser said:\n"
                '"Here\'s everything:  some text  more text"'
            ),
            audio("audio.mp3"),
        ],
    ),
]
