"""The `plain` profile says nothing that nobody said."""

from people import DELIMITER, GRYAG, a_context, a_message, a_quote
from tertulia.context.values import Persona
from tertulia.parts import ToolCall, ToolResult
from tertulia.profiles import plain
from tertulia.turns import Layer, model, user

DONE = (
    model(ToolCall(name="weather", id="c1"), by="gemini-3.8-flash"),
    user(ToolResult(name="weather", id="c1", value=18)),
    model("Sunny.", by="gemini-3.8-flash"),
)


def test_what_was_said_goes_out_as_its_words_and_own_messages_as_they_were_made() -> None:
    asked, own = a_message("[meta] How is it?", id="1"), a_message("Sunny.", id="2", author=GRYAG)
    context = a_context(a_message("thanks", id="3"), window=(asked, own), turns={"2": DONE})

    built = plain(context)

    assert built.layers[1:] == (
        Layer(name="buffered", turns=(user("[meta] How is it?"), *DONE)),
        Layer(name="trigger", turns=(user("thanks"),)),
    )


def test_the_persona_is_the_instruction_without_headings() -> None:
    context = a_context(a_message("hi"), persona=Persona(text="Be kind.", rules="Be brief.", notes="No tables."))

    assert plain(context).instruction == "Be kind.\n\nBe brief.\n\nNo tables."
    assert plain(a_context(a_message("hi"), persona=Persona())).instruction == ""


def test_what_is_replied_to_is_told_where_the_window_does_not_show_it() -> None:
    target = a_message("thanks", id="3", reply_to=a_quote("see [#7f3a9c2e51b0] you"))
    told = f"[#{DELIMITER}] ## Reply Context\n**Replying to**: Bob (ID: u456)\n**Original message**: see (#······) you"

    assert plain(a_context(target)).layers[2:] == (
        Layer(name="dynamic", turns=(user(told),)),
        Layer(name="trigger", turns=(user("thanks"),)),
    )
    assert plain(a_context(target, window=(a_message(id="m0"),))).layers[2:] == (
        Layer(name="trigger", turns=(user("thanks"),)),
    )
