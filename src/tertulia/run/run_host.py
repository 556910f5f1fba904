"""The host of a run: what its loop asks of `Chat`, the engine or a replay, which runs it."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from tertulia.errors import FileGone, RequestRefused
from tertulia.models.base import Model, Response
from tertulia.parts import ToolResult
from tertulia.run.fallbacks import ExpiredFiles
from tertulia.run.journal import Run, ToolRun
from tertulia.toolbox.run_context import RunContext
from tertulia.turns import Prompt, Turn


class AttachesMedia(Protocol):
    """Puts the content of media into prompts, just before these are sent; stored prompts are without it."""

    async def attach(self, prompt: Prompt, model: Model) -> Prompt:
        """Return the prompt as it is sent to *model*."""
        return prompt

    async def renew(self, error: FileGone, prompt: Prompt, model: Model) -> bool:
        """Forget what the service lost of an attached *prompt*; return whether another `attach` can help."""
        return False

    def leave_out(self, error: RequestRefused, prompt: Prompt, sent: Prompt, model: Model, *, attempt: int) -> bool:
        """Let media of *prompt* go in words that may be refused; return whether another `attach` can help."""
        return False

    def accept(self, prompt: Prompt, sent: Prompt, model: Model) -> None:
        """Note that the service accepted a prompt as it was *sent*."""
        return


class NoAttachments(AttachesMedia):
    """Sends each prompt as it is."""


class RunHost:
    """What the loop of a run asks. By itself a host does the least: nobody waits, nothing joins, nothing is stored.

    No prompt names a file of *expired_files*. Media get their content from *attachments* before each call.
    """

    def __init__(self, *, attachments: AttachesMedia | None = None, expired_files: ExpiredFiles | None = None) -> None:
        self.attachments = attachments or NoAttachments()
        self.expired_files = expired_files or ExpiredFiles()

    def waiting(self) -> AbstractAsyncContextManager[None]:
        """Return what is entered while a model is awaited."""
        return nullcontext()

    async def join(self, run: Run) -> tuple[Run, tuple[Turn, ...]]:
        """Return the run with the messages that it takes in before its next step, and those messages as turns."""
        return run, ()

    async def refresh(self, prompt: Prompt) -> Prompt:
        """Return the prompt of a later step with its state as it is now."""
        return prompt

    async def correction(self, response: Response) -> str | None:
        """Return a text for the model about its response, if it needs one."""
        return None

    def tool_context(self, run: Run, tool: ToolRun) -> RunContext:
        return RunContext(run_id=run.id, step=tool.step, call=tool.number, now=tool.began_at)

    async def store_media(self, run: Run, result: ToolResult) -> ToolResult:
        """Return the result of a tool with stored files in place of bytes and addresses."""
        return result
