"""MediaContract: the tests of `Platform.fetch`, and of media that are sent."""

from tertulia.errors import MediaUnavailable
from tertulia.parts import Media
from tertulia.testing.contract_session import Session, check

PNG = bytes.fromhex(  # one black dot
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360000000"
    "02000148afa4710000000049454e44ae426082"
)
_PICTURE = Media(media_kind="photo", unique_id="dot", mime="image/png", data=PNG, rendered_text="a dot")


class MediaContract:
    """A photo of a person can be fetched; a picture of the bot is shown, or told in words."""

    @check
    async def test_a_picture_is_shown_as_such_or_told_in_words(self, session: Session) -> None:
        alice, place = await session.direct_chat()
        await session.start(["Look.", _PICTURE])

        await session.world.post(place, alice, "show me")

        async def is_there() -> bool:
            shown = await session.world.shown(place)
            words = " ".join(message.text for message in shown)
            is_told = "a dot" in words if not session.platform.capabilities.media else any(one.media for one in shown)
            return is_told and "Look." in words

        await session.until(is_there, lambda: "neither the picture nor its words are shown")

    @check
    async def test_a_photo_of_a_person_is_fetched_as_it_was_sent(self, session: Session) -> None:
        alice, place = await session.direct_chat()
        await session.start("Nice.")

        await session.world.post_photo(place, alice, PNG)

        async def photos() -> list[Media]:
            return [part for one in await session.log(place) for part in one.parts if isinstance(part, Media)]

        async def is_there() -> bool:
            return bool(await photos())

        await session.until(is_there, lambda: "no message with the photo is stored")
        (photo,) = await photos()
        assert photo.unique_id
        if photo.data is None:
            number = photo.unique_id
            assert not number.isdecimal(), f"put the service before the unique id {number}: another one counts too"
            assert await session.platform.fetch(photo, limit=len(PNG)) == PNG
            assert await _is_refused(session, photo)


async def _is_refused(session: Session, photo: Media) -> bool:
    """Return whether a photo that is larger than the limit is refused for good."""
    try:
        await session.platform.fetch(photo, limit=len(PNG) - 1)
    except MediaUnavailable as error:
        return not error.for_now
    return False
