"""Lines: what the bot itself says in one language, without a model; the lines in English. Pure."""

from msgspec import Struct


class Lines(Struct, frozen=True, kw_only=True):
    """The lines of one language, by default in English. `{…}` is filled in; every language has the same."""

    # instead of an answer
    too_many: str = "That was more than I can answer at once. I go on in a little while; please ask again then."
    nothing_to_say: str = "I have no answer to that. Please try to say it differently."
    failed: str = "Something went wrong on my side, and I could not answer this. Please try again."
    context_too_long: str = "This conversation has become too long for me, and I could not answer. Please begin anew."
    run_timed_out: str = "This took longer than I may work on one answer, and I stopped. Please ask for less at once."
    quota_exhausted: str = "I have used up what I may ask of my model, and cannot answer for now."
    rate_limited: str = "My model has too much to do just now, and I could not answer. Please try again in a while."
    model_unavailable: str = "I cannot reach my model just now, and could not answer. Please try again in a while."
    operator_must_act: str = "I cannot answer until whoever runs me has looked after me; they have been told."
    spent: str = "I have used up what I may spend today, and cannot answer any more until tomorrow."
    refused: str = "I had an answer, but this chat does not take it."  # the platform takes no part of it
    refused_rest: str = "This chat does not take the rest of my answer."
    cut: str = "(My answer was too long for this chat; the rest of it is left out.)"
    more_media: str = "({count} more not shown: at most {most} files go with one answer.)"  # below an answer
    stopped_draft: str = "(stopped)"  # replaces a draft without an answer
    forget_one: str = "I would forget: “{fact}” Say yes, and it is forgotten."
    forget_several: str = "I would forget:\n{facts}\nSay yes, and all of it is forgotten."
    forgotten: str = "It is forgotten."

    # commands: what each is for, as it is announced and listed by /help
    about_help: str = "this list"
    about_memory: str = "what I remember of you; /memory why ID: the messages that say so"
    about_forget: str = "remove what I remember, by its ID or words of it, and hide its source; /forget all: everything"
    about_remind: str = "a reminder here, as in: /remind tomorrow 9:00 call mum, /remind every weekday at 8 stand up"
    about_tasks: str = "what is planned here; /tasks cancel ID: no longer"
    about_clear: str = "begin anew; I no longer see what has been said here"
    about_stop: str = "stop the answer that is being written"
    about_block: str = "no longer answer somebody: /block ID, /block ID 1h, or as a reply to them"
    about_unblock: str = "answer them again: /unblock ID, or as a reply to them"
    about_limit: str = "how many messages of a person I answer; /limit 10 60: 10 in 60 seconds; /limit - takes it back"
    about_persona: str = "who I am; with a text, I am that; /persona - takes it back"
    about_agents: str = "who of us is here; /agents Ada, Bob: only these; /agents - takes it back"
    about_agent: str = (
        "who answers where nobody is named: /agent Ada; owners: /agent add Ada: You are Ada, /agent remove Ada"
    )
    about_stats: str = "messages, answers and places"
    about_usage: str = "tokens and money by day and model"

    # answers to commands
    greeting: str = (
        "Hello, I am {name}. Write to me here; in a group, call me by my name. /help lists what else I can do."
    )
    unknown_command: str = "There is no /{name}; /help lists what there is."
    command_failed: str = "Something went wrong on my side, and this was not done. Please try again."
    nothing_remembered: str = "Nothing is remembered of you."
    nothing_like_that: str = "Nothing like that is remembered of you."
    all_forgotten: str = "Nothing is remembered of you any more."
    which_of_these: str = "Which of these? /forget ID"
    facts_with_id: str = "Facts with an id that begins so: {count}."
    sources_gone: str = "The messages it was learned from are hidden, or gone."
    fact_imported: str = "It was imported from {program}, which names no message of it."
    fact_since: str = "{fact} (since {moment})"
    nothing_planned: str = "Nothing is planned here."
    tasks_with_id: str = "Tasks with this id: {count}. /tasks lists them."
    task_cancelled: str = "Cancelled: {task}"
    only_own_tasks: str = "Only whoever asked for it, or an administrator, can cancel this."
    begun_anew: str = "Begun anew: I no longer see what was said here before."
    only_administrators: str = "Only an administrator can let this conversation begin anew."
    nothing_to_stop: str = "Nothing is being written."
    stopped: str = "Stopped."
    only_asker: str = "Only whoever asked, or an administrator, can stop this answer."
    reminder_set: str = "I will remind you: {moment}."
    reminder_again: str = "And then: {when}. /tasks cancel ID stops it."
    reminder: str = "Reminder: {text}"
    remind_how: str = "When, and of what? As in: /remind in 20 minutes tea, /remind every day at 9:00 walk"
    remind_when: str = "That is not ahead, or more than ten years away; it is now {moment}."
    remind_full: str = "There are {count} reminders to come here, and there can be no more."

    # answers to owners
    block_whom: str = "Whom? /{command} ID, or /{command} as a reply to a message of theirs."
    block_nobody: str = "I block neither myself nor an owner."
    blocked: str = "{id} is blocked."
    blocked_until: str = "{id} is blocked until {moment}."
    unblocked: str = "{id} is unblocked."
    not_blocked: str = "{id} was not blocked."  # as nobody had to be unblocked
    unknown_person: str = "I know nobody with this id yet; is it right?"
    limits: str = "Of one person I answer {messages} messages in {seconds} seconds."
    limit_how: str = "As in: /limit 10 60, which is 10 messages of a person in 60 seconds."
    no_persona: str = "The persona has no text."
    until_reset: str = "This holds until /{command} -, or until it is changed in tertulia.toml."
    stats: str = "{messages} messages, {runs} runs and {replies} replies in {places} places. Running since {moment}."
    usage: str = "{day} {model}: {tokens} tokens, {money}"
    no_usage: str = "No model was called in the last seven days."

    # answers about agents
    agents_here: str = "Here: {names}."
    agents_elsewhere: str = "Not here: {names}."
    agent_default: str = "{name} (answers where nobody is named)"  # of the one who answers where nobody is named
    unknown_agent: str = "There is no {name}; there are {names}."
    agents_locked: str = "Who is here is set in tertulia.toml, and commands cannot change it."
    agents_by_administrators: str = "Only an administrator can change who is here."
    only_owners: str = "Only an owner of the bot can do this."
    agent_how: str = "As in: /agent add Ada: You are Ada Lovelace, and think in numbers."
    agent_configured: str = "{name} is set in tertulia.toml; change it there."
    agent_added: str = "{name} is here from now on."
    agent_removed: str = "{name} is gone; what was said stays."
    agent_tasks_cancelled: str = "{name} was removed; planned tasks that are cancelled here: {count}."


ENGLISH = Lines()
