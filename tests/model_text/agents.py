"""What each of three agents in one place reads of the same evening, in each profile."""

import re

from engine.agents.evening import ANN, BOB, CLEO, SECRET, an_evening
from engine.engines import GROUP
from model_text.shown import a_section, shown_prompt
from tertulia.engine.agents.agent import Agent
from tertulia.messages import Quote

ADA, KANT = Agent(name="Ada"), Agent(name="Kant", names=("the philosopher",))
HUME = Agent(name="Hume", knows="present")


async def of_profile(name: str) -> str:
    """The last prompt of each: its own words, those of the others, and what one of them has missed."""
    async with an_evening((ADA, KANT, HUME), profile=name, memory=False) as evening:
        say, models = evening.say, evening.models
        models["Ada"].next = ["It can weave algebra.", "Hume, what do you say?", "So be it."]
        models["Kant"].next = ["Can it judge, though?", "Dare to know."]
        models["Hume"].next = ["Custom is the guide of life.", "I was away."]
        await evening.command(ANN, "/agents Ada, Kant")
        await say(ANN, "Ada, Kant, what can an engine do?")
        await evening.command(ANN, "/agents -")
        of_kant = next(one for one, reply in evening.platform.shown.items() if "judge" in reply.text)
        await say(BOB, "Who judges, Ada?", reply_to=Quote(message_id=of_kant))
        await say(CLEO, "Ada, and what of habit?")
        await say(ANN, "Kant, Hume, Ada: good night.")
        mark = await evening.store.place_settings.delimiter(GROUP)
        prompts = {one: model.prompts[-1] for one, model in models.items() if model.prompts}
    sections = [a_section(one, shown_prompt(prompt)) for one, prompt in prompts.items()]
    text = SECRET.sub("Lviv", "\n".join(sections).replace(mark, "MARK"))
    return re.sub(r"12:\d\d(:\d\d)?", "12:00", text)  # how often the clock was set forward depends on the machine
