"""A simulator of the Telegram Bot API."""

from tertulia.sim.server import Clock
from tertulia.sim.telegram.accounts import Message, Topic
from tertulia.sim.telegram.api import Call
from tertulia.sim.telegram.chats import SimChat
from tertulia.sim.telegram.contents import image
from tertulia.sim.telegram.entities import Entity
from tertulia.sim.telegram.people import SimBot, SimUser
from tertulia.sim.telegram.sending import Action, Draft
from tertulia.sim.telegram.sim import TOKEN, TelegramSim

__all__ = [
    "TOKEN",
    "Action",
    "Call",
    "Clock",
    "Draft",
    "Entity",
    "Message",
    "SimBot",
    "SimChat",
    "SimUser",
    "TelegramSim",
    "Topic",
    "image",
]
