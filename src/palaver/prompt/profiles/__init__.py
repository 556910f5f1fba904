"""The named ways to lay a context out as a prompt: one function each. Pure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from palaver.context.values import Context
from palaver.prompt.profiles.block import block
from palaver.prompt.profiles.headers import headers
from palaver.prompt.profiles.layered import layered
from palaver.prompt.profiles.native import native
from palaver.prompt.profiles.plain import plain
from palaver.prompt.profiles.single import single
from palaver.prompt.profiles.tail import tail
from palaver.turns import Prompt

Profile = Callable[[Context], Prompt]

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "layered": layered,
        "tail": tail,
        "native": native,
        "block": block,
        "headers": headers,
        "single": single,
        "plain": plain,
    }
)
