"""Lines: what the bot itself says in one language, without a model. Pure."""

from msgspec import Struct


class Lines(Struct, frozen=True, kw_only=True):
    """The lines of one language. `{…}` stands for what is filled in; every language has the same."""

    # instead of an answer
    too_many: str
    nothing_to_say: str
    failed: str
    context_too_long: str
    run_timed_out: str
    quota_exhausted: str
    rate_limited: str
    model_unavailable: str
    operator_must_act: str
    spent: str
    refused: str  # the platform takes no part of it
    refused_rest: str
    cut: str  # below an answer of too many messages
    more_media: str  # {count} {most}; below an answer
    stopped_draft: str  # replaces a draft without an answer
    forget_one: str  # {fact}
    forget_several: str  # {facts}
    forgotten: str

    # commands: what each is for, as it is announced and listed by /help
    about_help: str
    about_memory: str
    about_forget: str
    about_remind: str
    about_tasks: str
    about_clear: str
    about_stop: str
    about_block: str
    about_unblock: str
    about_limit: str
    about_persona: str
    about_agents: str
    about_agent: str
    about_stats: str
    about_usage: str

    # answers to commands
    greeting: str  # {name}
    unknown_command: str  # {name}
    command_failed: str
    nothing_remembered: str
    nothing_like_that: str
    all_forgotten: str
    which_of_these: str
    facts_with_id: str  # {count}
    sources_gone: str
    fact_imported: str  # {program}
    fact_since: str  # {fact} {moment}
    nothing_planned: str
    tasks_with_id: str  # {count}
    task_cancelled: str  # {task}
    only_own_tasks: str
    begun_anew: str
    only_administrators: str
    nothing_to_stop: str
    stopped: str
    only_asker: str
    reminder_set: str  # {moment}
    reminder_again: str  # {when}
    reminder: str  # {text}
    remind_how: str
    remind_when: str  # {moment}
    remind_full: str  # {count}

    # answers to owners
    block_whom: str  # {command}
    block_nobody: str
    blocked: str  # {id}
    blocked_until: str  # {id} {moment}
    unblocked: str  # {id}
    not_blocked: str  # {id}; as nobody had to be unblocked
    unknown_person: str
    limits: str  # {messages} {seconds}
    limit_how: str
    no_persona: str
    until_reset: str  # {command}
    stats: str  # {messages} {runs} {replies} {places} {moment}
    usage: str  # {day} {model} {tokens} {money}
    no_usage: str

    # answers about agents
    agents_here: str  # {names}
    agents_elsewhere: str  # {names}
    agent_default: str  # {name}; of the one who answers where nobody is named
    unknown_agent: str  # {name} {names}
    agents_locked: str
    agents_by_administrators: str
    only_owners: str
    agent_how: str
    agent_configured: str  # {name}
    agent_added: str  # {name}
    agent_removed: str  # {name}
    agent_tasks_cancelled: str  # {name} {count}
