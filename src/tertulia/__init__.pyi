"""The public names of Tertulia."""

from .chat import Chat as Chat
from .context.budget import Budget as Budget
from .context.gather import ContextOptions as ContextOptions
from .context.sources import volatile as volatile
from .context.values import Context as Context
from .context.values import Persona as Persona
from .context.values import Workspace as Workspace
from .engine.agents.agent import Agent as Agent
from .engine.behavior import Behavior as Behavior
from .engine.engine import Engine as Engine
from .engine.limits import Cap as Cap
from .engine.limits import Limits as Limits
from .engine.memory import Memory as Memory
from .engine.task_worker import TaskHandler as TaskHandler
from .errors import (
    AnswerUnfit as AnswerUnfit,
)
from .errors import (
    CacheGone as CacheGone,
)
from .errors import (
    CallerMustAct as CallerMustAct,
)
from .errors import (
    ConnectionLost as ConnectionLost,
)
from .errors import (
    ContextTooLong as ContextTooLong,
)
from .errors import (
    FileExists as FileExists,
)
from .errors import (
    FileGone as FileGone,
)
from .errors import (
    HandleGone as HandleGone,
)
from .errors import (
    HostUnknown as HostUnknown,
)
from .errors import (
    InvalidValue as InvalidValue,
)
from .errors import (
    KeyMissing as KeyMissing,
)
from .errors import (
    KeyRefused as KeyRefused,
)
from .errors import (
    MediaUnavailable as MediaUnavailable,
)
from .errors import (
    MediaUnreadable as MediaUnreadable,
)
from .errors import (
    ModelUnavailable as ModelUnavailable,
)
from .errors import (
    ModelUnknown as ModelUnknown,
)
from .errors import (
    NotAllowed as NotAllowed,
)
from .errors import (
    NothingToSend as NothingToSend,
)
from .errors import (
    NotInstalled as NotInstalled,
)
from .errors import (
    NotSent as NotSent,
)
from .errors import (
    OperatorMustAct as OperatorMustAct,
)
from .errors import (
    Overloaded as Overloaded,
)
from .errors import (
    PlaceRefused as PlaceRefused,
)
from .errors import (
    PromptRemoved as PromptRemoved,
)
from .errors import (
    QuotaExhausted as QuotaExhausted,
)
from .errors import (
    RateLimited as RateLimited,
)
from .errors import (
    RequestRefused as RequestRefused,
)
from .errors import (
    ResponseUnreadable as ResponseUnreadable,
)
from .errors import (
    RunTimedOut as RunTimedOut,
)
from .errors import (
    ScriptEnded as ScriptEnded,
)
from .errors import (
    SendingFailed as SendingFailed,
)
from .errors import (
    SendRefused as SendRefused,
)
from .errors import (
    ServiceFault as ServiceFault,
)
from .errors import (
    SpendCapReached as SpendCapReached,
)
from .errors import (
    StoreAway as StoreAway,
)
from .errors import (
    StoreBroken as StoreBroken,
)
from .errors import (
    StoreBusy as StoreBusy,
)
from .errors import (
    StoreFull as StoreFull,
)
from .errors import (
    StoreRefused as StoreRefused,
)
from .errors import (
    StoreTooNew as StoreTooNew,
)
from .errors import (
    StoreTrouble as StoreTrouble,
)
from .errors import (
    TertuliaError as TertuliaError,
)
from .errors import (
    TimedOut as TimedOut,
)
from .media.values import MediaOptions as MediaOptions
from .messages import Author as Author
from .messages import Message as Message
from .messages import Place as Place
from .messages import Quote as Quote
from .messages import Reply as Reply
from .models import model_named as model_named
from .models.base import Model as Model
from .models.base import Response as Response
from .models.base import Usage as Usage
from .parts import (
    Media as Media,
)
from .parts import (
    Opaque as Opaque,
)
from .parts import (
    Part as Part,
)
from .parts import (
    Text as Text,
)
from .parts import (
    Thought as Thought,
)
from .parts import (
    ToolCall as ToolCall,
)
from .parts import (
    ToolResult as ToolResult,
)
from .platform import (
    Capabilities as Capabilities,
)
from .platform import (
    Commanded as Commanded,
)
from .platform import (
    CommandInfo as CommandInfo,
)
from .platform import (
    Deleted as Deleted,
)
from .platform import (
    Delivered as Delivered,
)
from .platform import (
    Delivery as Delivery,
)
from .platform import (
    Edited as Edited,
)
from .platform import (
    Inbox as Inbox,
)
from .platform import (
    PlaceJoined as PlaceJoined,
)
from .platform import (
    PlaceLeft as PlaceLeft,
)
from .platform import (
    PlaceMigrated as PlaceMigrated,
)
from .platform import (
    Platform as Platform,
)
from .platform import (
    Reacted as Reacted,
)
from .platform import (
    Received as Received,
)
from .platform import (
    Stopped as Stopped,
)
from .profiles import Profile as Profile
from .store import Store as Store
from .sync import SyncChat as SyncChat
from .tasks.task import Task as Task
from .toolbox.run_context import RunContext as RunContext
from .toolbox.toolbox import Tool as Tool
from .toolbox.toolbox import Toolbox as Toolbox
from .toolbox.toolbox import tool as tool
from .turns import (
    Layer as Layer,
)
from .turns import (
    Prompt as Prompt,
)
from .turns import (
    Record as Record,
)
from .turns import (
    Settings as Settings,
)
from .turns import (
    ToolSpec as ToolSpec,
)
from .turns import (
    Turn as Turn,
)
from .turns import (
    model as model,
)
from .turns import (
    user as user,
)
