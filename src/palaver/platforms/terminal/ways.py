"""How a person gets what a hint tells of: by options at the command line, by commands in a chat. Pure."""

from msgspec import Struct


class Ways(Struct, frozen=True, kw_only=True):
    model: str  # chooses a model
    address: str  # says where a model is served
    key: str  # gives a key; {names} are the variables
    instead: str  # goes on without the model that was asked for
    forget: str  # makes a conversation shorter


AT_START = Ways(
    model="--model",
    address="--base-url http://…/v1",
    key="set {names}",
    instead="leave --model out and talk to the embedded model",
    forget="Begin with less, or anew with --db :memory:.",
)
IN_CHAT = Ways(
    model="/model",
    address="/model NAME http://…/v1",
    key="start again with {names} set",
    instead="stay with the model that answers now",
    forget="/clear begins anew.",
)
