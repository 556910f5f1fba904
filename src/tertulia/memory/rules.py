"""The rules of memory that a store is given, a `memory.values.FactRules`. Pure."""

from tertulia.memory.facts import as_hearsay, fact_digest, facts_to_drop, merge_again, merge_facts
from tertulia.memory.forget_facts import find_stating, find_withdrawn, hidden_sentences, is_stated_by_name
from tertulia.memory.verify.statements import is_repetition

__all__ = [
    "as_hearsay",
    "fact_digest",
    "facts_to_drop",
    "find_stating",
    "find_withdrawn",
    "hidden_sentences",
    "is_repetition",
    "is_stated_by_name",
    "merge_again",
    "merge_facts",
]
