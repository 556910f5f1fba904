"""Whatever a call holds, it is answered as the Bot API answers."""

import random
from typing import Any

from sim.telegram.api import Api
from tertulia.sim.telegram import TelegramSim, image
from tertulia.sim.telegram.methods import METHODS

NAMES = (
    *"chat_id text parse_mode entities caption caption_entities reply_markup reply_parameters message_id".split(),
    *"message_ids message_thread_id draft_id action reaction media photo document voice audio video animation".split(),
    *"sticker video_note duration width file_id user_id commands scope language_code callback_query_id".split(),
)
VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        1,
        -1,
        2**60,
        1.5,
        "",
        "x",
        "@x",
        [],
        {},
        [1],
        [[1]],
        [{}],
        [None],
        {"type": 5},
        {"type": "emoji"},
    ),
    *("html", "MarkdownV2", "<b>", "*a", "attach://f", "attach://g", "http://x", {"message_id": None}),
    *({"inline_keyboard": [5]}, {"inline_keyboard": [[5]]}, {"message_id": 1, "quote": 5}, {"message_id": 1}),
    *({"type": "chat", "chat_id": {}}, {"type": "chat_member", "chat_id": 1001, "user_id": True}),
    [{"type": "photo", "media": "attach://f"}],
    [{"type": "photo", "media": 5}],
    [{"type": "bold", "offset": 0, "length": 2**40}],
    [{"type": "text_link", "offset": 0, "length": 1, "url": "http://[x"}],
    [{"type": "text_mention", "offset": 0, "length": 1, "user": {"id": "x"}}],
]


async def test_no_call_is_answered_with_anything_but_an_answer(sim: TelegramSim, api: Api) -> None:
    draw = random.Random(7)  # noqa: S311 (the same calls each time)
    alice = sim.user("Alice")
    group = sim.group("G", [alice], forum=True)
    group.add_topic("Tea")
    alice.send(sim.private(alice), "x")
    files = {"f": ("f.png", image(20, 20), "image/png"), "g": ("g.png", b"", "image/png")}

    statuses = set()
    for number in range(400):
        params = {name: draw.choice(VALUES) for name in draw.sample(NAMES, draw.randint(0, 6))}
        if number % 4:
            params |= {"chat_id": draw.choice([alice.id, group.id]), "text": draw.choice(["hello", "<b>x</b>", "*x*"])}
        method = draw.choice(list(METHODS))
        answer = await (api.upload(method, files, **params) if number % 3 else api(method, **params))
        statuses.add(200 if answer["ok"] else answer["error_code"])

    assert statuses <= {200, 400, 403}
    assert statuses > {200}
