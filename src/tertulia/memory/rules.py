"""The rules of memory that a store is given, a `memory.values.FactRules`. Pure."""

from tertulia.memory.facts import as_hearsay, fact_digest, facts_to_drop, merge_again, merge_facts
from tertulia.memory.verify.statements import is_repetition

__all__ = ["as_hearsay", "fact_digest", "facts_to_drop", "is_repetition", "merge_again", "merge_facts"]
