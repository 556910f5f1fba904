"""A simulator of the Telegram Bot API."""

from palaver.sim.server import Clock
from palaver.sim.telegram.accounts import Message, Topic
from palaver.sim.telegram.api import Call
from palaver.sim.telegram.chats import SimChat
from palaver.sim.telegram.contents import image
from palaver.sim.telegram.entities import Entity
from palaver.sim.telegram.people import SimBot, SimUser
from palaver.sim.telegram.sending import Action, Draft
from palaver.sim.telegram.sim import TOKEN, TelegramSim

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
