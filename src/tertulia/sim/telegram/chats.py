"""Chats of a simulated Telegram as a test sees and changes them."""

from typing import TYPE_CHECKING

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.accounts import Account, Chat, Message, Status, Topic
from tertulia.sim.telegram.world import World

if TYPE_CHECKING:
    from tertulia.sim.telegram.people import SimUser


class SimChat:
    """A private chat, a group, a supergroup or a channel."""

    def __init__(self, world: World, chat: Chat) -> None:
        self.chat = chat
        self._world = world

    @property
    def id(self) -> int:
        return self.chat.id

    @property
    def messages(self) -> list[Message]:
        """The messages that are not deleted, the oldest first."""
        return [self.chat.messages[number] for number in sorted(self.chat.messages)]

    @property
    def texts(self) -> list[str]:
        """The texts and captions of `messages`."""
        return [message.text for message in self.messages]

    def message(self, which: Message | int) -> Message:
        """Return a message by its id."""
        number = which.id if isinstance(which, Message) else which
        return self.chat.messages[number] if number in self.chat.messages else self.chat.deleted[number]

    def of(self, user: "SimUser") -> list[Message]:
        """Return the messages of somebody."""
        return [message for message in self.messages if message.sender == user.id]

    def add(self, user: "SimUser", *, by: "SimUser | None" = None) -> None:
        """Add somebody, also a bot: the service message comes after the change of the member."""
        actor = by.account if by is not None else self._owner(user.account)
        self._set(user.account, "member", actor)
        self._service(actor, {"new_chat_members": [user.account.user()]})

    def kick(self, user: "SimUser", *, by: "SimUser | None" = None) -> None:
        """Remove somebody for good."""
        self._remove(user.account, "kicked", by.account if by is not None else self._owner(user.account))

    def leave(self, user: "SimUser") -> None:
        """Let somebody leave."""
        self._remove(user.account, "left", user.account)

    def promote(self, user: "SimUser", *, by: "SimUser | None" = None) -> None:
        """Make somebody an administrator."""
        self._set(user.account, "administrator", by.account if by is not None else self._owner(user.account))

    def demote(self, user: "SimUser", *, by: "SimUser | None" = None) -> None:
        """Make an administrator a member again."""
        self._set(user.account, "member", by.account if by is not None else self._owner(user.account))

    def restrict(self, **permissions: bool) -> None:
        """Set what members may do, as `can_send_messages=False`."""
        self.chat.permissions |= permissions

    def add_topic(self, name: str, *, by: "SimUser | None" = None) -> Topic:
        """Open a topic of a forum, or of a private chat whose bot has topics; its `id` is the thread."""
        owner = self.chat.person.id if self.chat.person is not None else next(iter(self.chat.members))
        creator = by.id if by is not None else owner
        return self._world.add_topic(self.chat, name, creator)

    def close_topic(self, topic: Topic) -> None:
        """Close a topic: only administrators write there."""
        topic.is_closed = True
        creator = self._world.accounts[next(iter(self.chat.members))]
        self._service(creator, {"forum_topic_closed": {}}, topic=topic.id)

    def migrate(self) -> "SimChat":
        """Turn a group into a supergroup with another id; return it."""
        return SimChat(self._world, self._world.migrate(self.chat, next(iter(self.chat.members))))

    def delete(self) -> None:
        """Delete the group."""
        self.chat.is_deleted = True

    def _owner(self, otherwise: Account) -> Account:
        owner = next((number for number, status in self.chat.members.items() if status == "creator"), otherwise.id)
        return self._world.accounts[owner]

    def _set(self, account: Account, status: Status, by: Account) -> None:
        self._world.set_status(self.chat, account, status, by)

    def _remove(self, account: Account, status: Status, by: Account) -> None:
        self._set(account, status, by)
        self._service(by, {"left_chat_member": account.user()})

    def _service(self, by: Account, content: Wire, topic: int | None = None) -> None:
        if self.chat.type != "channel":
            message = Message(id=0, date=self._world.now(), sender=by.id, content=content, topic=topic)
            self._world.post(self.chat, message)
