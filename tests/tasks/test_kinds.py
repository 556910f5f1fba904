from tertulia.tasks import blocks
from tertulia.tasks.blocks import lines_for_model, parse
from tertulia.tasks.kinds import ABOUT, ABOUT_IDS, DESTRUCTIVE, KINDS, Body, for_model, offered_kinds
from tertulia.tasks.task import Send, Think


def draw(body: Body) -> str:
    return body.text


def test_every_kind_that_every_agent_knows_has_a_line_of_its_own() -> None:
    assert set(ABOUT) == set(KINDS)
    assert all(line == line.strip() and "\n" not in line and line for line in ABOUT.values())


def test_a_model_is_told_of_the_kinds_it_may_use_in_their_order() -> None:
    lines = lines_for_model(offered_kinds((*KINDS, "draw", "sing")), {"draw": " a picture\nof it ", "sing": ""})

    known = [name for name in KINDS if name not in DESTRUCTIVE and name != "unblock"]
    assert [line.text for line in lines] == [
        *(f"`# «{name}»`: {ABOUT[name]}" for name in known),
        "`# «draw»`: a picture of it",
        "`# «sing»`",
    ]
    assert [line.with_id for line in lines if line.with_id] == [ABOUT_IDS["send"]]
    allowed = lines_for_model(offered_kinds(KINDS, may={"block"}), {})
    assert [line.text for line in allowed][5:] == [f"`# «{name}»`: {ABOUT[name]}" for name in ("block", "unblock")]


def test_what_is_not_offered_is_refused_but_thinking() -> None:
    text = "".join(f"# «{name}»\nx\n" for name in KINDS if name != "wait")

    found = parse(text, kinds=for_model(KINDS, offered_kinds(KINDS, may=DESTRUCTIVE, chosen=("send",))))

    assert found.blocks == (Send(text="x"), Think(text="x"))
    assert found.problems[0] == "line 3, `# «sticker»`: it is not allowed here"


def test_a_kind_may_be_kept_from_it_or_put_in_other_words() -> None:
    lines = lines_for_model(("send", "remember", "wait"), {"remember": None, "wait": "a pause", "send": ""})

    assert [line.text for line in lines] == [f"`# «send»`: {ABOUT['send']}", "`# «wait»`: a pause"]


def test_what_is_told_of_a_kind_is_no_heading_itself() -> None:
    assert all(blocks.heading_at(f"- {line.text}", 0, KINDS) is None for line in lines_for_model(KINDS, {}))
