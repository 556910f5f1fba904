"""On Telegram: owners, languages, names with inflections and allowed chats, over real HTTP."""

import asyncio
from collections.abc import Sequence

from platforms.telegram.world import telegram
from tertulia.context.values import Persona
from tertulia.engine.behavior import Behavior
from tertulia.engine.command_list import help_lines
from tertulia.engine.engine import Engine
from tertulia.engine.languages.ukrainian import UKRAINIAN
from tertulia.models import Scripted
from tertulia.sim.telegram import SimChat, TelegramSim
from tertulia.store import Store

PERSONA = Persona(name="гряг", name_pattern="гряг*|гряже", text="You are gryag.")


async def said_by_bot(sim: TelegramSim, chat: SimChat, number: int) -> Sequence[str]:
    """What the bot has said in a chat, once it is so many messages."""
    await sim.until(lambda: len(chat.of(sim.bot)) >= number)
    return [message.text for message in chat.of(sim.bot)]


async def test_people_are_answered_in_their_language_where_the_bot_may_be() -> None:
    async with TelegramSim() as sim, Store.open(":memory:") as store:
        owner, olena = sim.user("Oleh", language_code="uk"), sim.user("Olena", language_code="uk-UA")
        group, strangers = sim.group("Kitchen", [owner, olena]), sim.group("Strangers", [olena])
        behavior = Behavior(
            debounce=0, owners=(f"telegram:{owner.id}",), allowed_places=(f"telegram:{group.id}", "direct")
        )
        engine = Engine(
            store, Scripted("Так?"), [telegram(sim)], persona=PERSONA, behavior=behavior, zone="Europe/Kyiv"
        )
        running = asyncio.create_task(engine.run())
        try:
            home, hers = sim.private(owner), sim.private(olena)
            olena.send(strangers, "Гряже, ти тут?")
            olena.send(group, "просто розмова")
            olena.send(group, "Гряже, ти тут?")
            in_group = await said_by_bot(sim, group, 1)
            olena.send(hers, "/start")
            olena.send(hers, "/stats")
            to_her = await said_by_bot(sim, hers, 2)
            owner.send(home, "/help")
            owner.send(home, f"/block {olena.id}")
            to_owner = await said_by_bot(sim, home, 2)
        finally:
            running.cancel()
            await asyncio.wait([running])
        blocked = await store.place_settings.blocked()

    assert in_group == ["Так?"]
    assert to_her == [UKRAINIAN.greeting.format(name="гряг"), UKRAINIAN.unknown_command.format(name="stats")]
    assert to_owner == [
        "\n".join(help_lines(UKRAINIAN, owner=True).values()),
        UKRAINIAN.blocked.format(id=olena.id),
    ]
    assert strangers.of(sim.bot) == []
    assert blocked == frozenset({("telegram", str(olena.id))})
