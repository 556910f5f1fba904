"""Every refusal of the Bot API that the simulator knows, with where its text comes from. Pure."""

from typing import Any, Literal

from msgspec import Struct

from tertulia.sim.errors import Wire

Origin = Literal["server", "tdlib", "telegram", "documentation"]
# server: the source of telegram-bot-api, up to 10.0; tdlib: the source of TDLib (entities and parse modes are compared
# with it in the tests); telegram: Telegram's own servers, whose source nobody has, as users report it;
# documentation: what is refused is documented, the words are not: unproven


class Refusal(Struct, frozen=True):
    """A refusal: its HTTP status, its text and the origin of the text."""

    code: int
    text: str
    origin: Origin


class Refused(Exception):
    """A call that the Bot API refuses. *rule* is a key of `REFUSALS`, or `fault`."""

    def __init__(self, code: int, description: str, *, rule: str, parameters: Wire | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.rule = rule
        self.parameters = parameters


def refused(rule: str, parameters: Wire | None = None, /, **values: Any) -> Refused:
    """Return the refusal of *rule*, its text filled with *values*."""
    refusal = REFUSALS[rule]
    return Refused(refusal.code, refusal.text.format(**values), rule=rule, parameters=parameters)


def flood(seconds: int) -> Refused:
    """Return the 429 that names *seconds* to wait."""
    return refused("flood", {"retry_after": seconds}, seconds=seconds)


REFUSALS: dict[str, Refusal] = {
    # routing
    "not-found": Refusal(404, "Not Found", "server"),
    "method": Refusal(404, "Not Found: method not found", "server"),
    "token-form": Refusal(401, "Unauthorized: invalid token specified", "server"),
    "token-range": Refusal(421, "Misdirected Request: unallowed token specified", "server"),
    "token": Refusal(401, "Unauthorized", "server"),
    "logged-out": Refusal(400, "Logged out", "server"),
    "body": Refusal(400, "Bad Request: can't parse request body", "documentation"),
    # updates and webhooks
    "poll-conflict": Refusal(
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
        "server",
    ),
    "poll-by-webhook": Refusal(409, "Conflict: terminated by setWebhook request", "server"),
    "webhook-active": Refusal(
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
        "server",
    ),
    "webhook-url": Refusal(400, "Bad Request: invalid webhook URL specified", "server"),
    "webhook-host": Refusal(
        400, "Bad Request: bad webhook: Failed to resolve host: Name or service not known", "server"
    ),
    "webhook-https": Refusal(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook", "server"),
    "webhook-port": Refusal(
        400, "Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443", "server"
    ),
    "secret-long": Refusal(400, "Bad Request: secret token is too long", "server"),
    "secret-letters": Refusal(400, "Bad Request: secret token contains unallowed characters", "server"),
    # chats
    "chat-id": Refusal(400, "Bad Request: chat_id is empty", "server"),
    "chat": Refusal(400, "Bad Request: chat not found", "server"),
    "upgraded": Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", "server"),
    "group-deleted": Refusal(403, "Forbidden: the group chat was deleted", "server"),
    "kicked": Refusal(403, "Forbidden: bot was kicked from the {kind} chat", "server"),
    "not-member": Refusal(403, "Forbidden: bot is not a member of the {kind} chat", "server"),
    "deactivated": Refusal(403, "Forbidden: user is deactivated", "server"),
    "blocked": Refusal(403, "Forbidden: bot was blocked by the user", "server"),
    "not-started": Refusal(403, "Forbidden: bot can't initiate conversation with a user", "server"),
    "to-bot": Refusal(403, "Forbidden: the bot can't send messages to the bot", "server"),
    "no-rights": Refusal(400, "Bad Request: not enough rights to send {what} to the chat", "tdlib"),
    "channel-rights": Refusal(400, "Bad Request: need administrator rights in the channel chat", "server"),
    "user": Refusal(400, "Bad Request: user not found", "server"),
    "user-id": Refusal(400, "Bad Request: invalid user_id specified", "server"),
    "member-list": Refusal(400, "Bad Request: there are no administrators in the private chat", "server"),
    "leave-private": Refusal(400, "Bad Request: chat member status can't be changed in private chats", "documentation"),
    # threads and replies
    "thread": Refusal(400, "Bad Request: message thread not found", "server"),
    "topic-closed": Refusal(400, "Bad Request: TOPIC_CLOSED", "telegram"),
    "reply": Refusal(400, "Bad Request: message to be replied not found", "server"),
    "reply-object": Refusal(400, "Bad Request: object expected as reply parameters", "server"),
    "reply-json": Refusal(400, "Bad Request: can't parse reply parameters JSON object", "server"),
    "quote": Refusal(400, "Bad Request: QUOTE_TEXT_INVALID", "telegram"),
    "markup-object": Refusal(400, "Bad Request: object expected as reply markup", "server"),
    "markup-json": Refusal(400, "Bad Request: can't parse reply keyboard markup JSON object", "server"),
    "markup-rows": Refusal(
        400, 'Bad Request: field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays', "server"
    ),
    "markup-buttons": Refusal(400, "Bad Request: can't parse inline keyboard button: {why}", "server"),
    "button-data": Refusal(400, "Bad Request: BUTTON_DATA_INVALID", "telegram"),
    # text
    "text-empty": Refusal(400, "Bad Request: message text is empty", "server"),
    "text-blank": Refusal(400, "Bad Request: text must be non-empty", "tdlib"),
    "text-bytes": Refusal(400, "Bad Request: text is too long", "server"),
    "text-long": Refusal(400, "Bad Request: message is too long", "tdlib"),
    "caption-long": Refusal(400, "Bad Request: message caption is too long", "tdlib"),
    "parse-mode": Refusal(400, "Bad Request: unsupported parse_mode", "server"),
    "entities": Refusal(400, "Bad Request: can't parse entities: {why}", "tdlib"),
    "entity": Refusal(400, "Bad Request: {why}", "tdlib"),
    "entity-object": Refusal(400, "Bad Request: can't parse MessageEntity: {why}", "server"),
    # messages
    "message-id": Refusal(400, "Bad Request: message identifier is not specified", "server"),
    "message-ids": Refusal(400, "Bad Request: message identifiers are not specified", "server"),
    "message-ids-json": Refusal(400, "Bad Request: can't parse message_ids JSON object", "server"),
    "message-ids-array": Refusal(400, "Bad Request: expected an Array of message identifiers", "server"),
    "message-ids-many": Refusal(400, "Bad Request: too many message identifiers specified", "server"),
    "edit": Refusal(400, "Bad Request: message to edit not found", "server"),
    "edit-denied": Refusal(400, "Bad Request: message can't be edited", "tdlib"),
    "no-text": Refusal(400, "Bad Request: there is no text in the message to edit", "tdlib"),
    "no-caption": Refusal(400, "Bad Request: there is no caption in the message to edit", "tdlib"),
    "same": Refusal(
        400,
        "Bad Request: message is not modified: specified new message content and reply markup are exactly the same "
        "as a current content and reply markup of the message",
        "server",
    ),
    "delete": Refusal(400, "Bad Request: message to delete not found", "server"),
    "delete-denied": Refusal(400, "Bad Request: message can't be deleted", "server"),
    "react": Refusal(400, "Bad Request: message to react not found", "server"),
    "sticker-set": Refusal(400, "Bad Request: STICKERSET_INVALID", "telegram"),
    "reaction": Refusal(400, "Bad Request: REACTION_INVALID", "telegram"),
    "reactions-many": Refusal(400, "Bad Request: REACTIONS_TOO_MANY", "telegram"),
    "reaction-array": Refusal(400, "Bad Request: expected an Array of ReactionType", "server"),
    "reaction-type": Refusal(400, "Bad Request: can't parse ReactionType: {why}", "server"),
    "reaction-json": Refusal(400, "Bad Request: can't parse reaction types JSON object", "server"),
    "action": Refusal(400, "Bad Request: wrong parameter action in request", "server"),
    "query": Refusal(
        400, "Bad Request: query is too old and response timeout expired or query ID is invalid", "server"
    ),
    # drafts
    "draft-id": Refusal(400, "Bad Request: RANDOM_ID_INVALID", "documentation"),
    "draft-chat": Refusal(400, "Bad Request: TEXTDRAFT_PEER_INVALID", "telegram"),
    # files
    "no-file": Refusal(400, "Bad Request: there is no {field} in the request", "server"),
    "file-empty": Refusal(400, "Bad Request: file must be non-empty", "tdlib"),
    "file-id": Refusal(400, "Bad Request: wrong file identifier/HTTP URL specified", "server"),
    "file-kind": Refusal(400, "Bad Request: can't use file of type {found} as {wanted}", "tdlib"),
    "file-fetch": Refusal(400, "Bad Request: failed to get HTTP URL content", "telegram"),
    "upload-long": Refusal(413, "Request Entity Too Large", "server"),
    "photo-long": Refusal(
        400,
        "Bad Request: file of size {size} bytes is too big for a photo; the maximum size is 10485760 bytes",
        "tdlib",
    ),
    "image": Refusal(400, "Bad Request: IMAGE_PROCESS_FAILED", "telegram"),
    "dimensions": Refusal(400, "Bad Request: PHOTO_INVALID_DIMENSIONS", "telegram"),
    "get-file-id": Refusal(400, "Bad Request: file_id not specified", "server"),
    "get-file": Refusal(400, "Bad Request: invalid file_id", "server"),
    "get-file-long": Refusal(400, "Bad Request: file is too big", "server"),
    # albums
    "media-missing": Refusal(400, 'Bad Request: parameter "media" is required', "server"),
    "media-json": Refusal(400, "Bad Request: can't parse media JSON object", "server"),
    "media-array": Refusal(400, "Bad Request: expected an Array of InputMedia", "server"),
    "media-object": Refusal(400, "Bad Request: can't parse InputMedia: {why}", "server"),
    "media-count": Refusal(400, "Bad Request: there are no messages to send", "tdlib"),
    "media-many": Refusal(400, "Bad Request: too many messages to send as an album", "tdlib"),
    "media-mixed": Refusal(400, "Bad Request: {kind} can't be mixed with other media types", "tdlib"),
    # commands
    "commands-json": Refusal(400, "Bad Request: can't parse commands JSON object", "server"),
    "commands-array": Refusal(400, "Bad Request: expected an Array of BotCommand", "server"),
    "commands-many": Refusal(400, "Bad Request: BOT_COMMANDS_TOO_MUCH", "documentation"),
    "command": Refusal(400, "Bad Request: BOT_COMMAND_INVALID", "telegram"),
    "command-object": Refusal(400, "Bad Request: can't parse BotCommand: {why}", "server"),
    "command-empty": Refusal(400, "Bad Request: command must be non-empty", "tdlib"),
    "command-long": Refusal(400, "Bad Request: command length must not exceed 32", "tdlib"),
    "command-text-empty": Refusal(400, "Bad Request: command description must be non-empty", "tdlib"),
    "command-text-long": Refusal(400, "Bad Request: command description length must not exceed 256", "tdlib"),
    "scope": Refusal(400, "Bad Request: can't parse BotCommandScope: {why}", "server"),
    "scope-json": Refusal(400, "Bad Request: can't parse BotCommandScope JSON object", "server"),
    "language": Refusal(400, "Bad Request: invalid language code specified", "tdlib"),
    # limits
    "flood": Refusal(429, "Too Many Requests: retry after {seconds}", "server"),
}
