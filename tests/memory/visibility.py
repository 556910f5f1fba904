"""The rule of privacy for facts in Python; the store has it as SQL (`tertulia.store.fact_rows`)."""

from tertulia.memory.facts import is_same_person, is_same_place
from tertulia.memory.values import Fact, Subject
from tertulia.messages import Place


def may_hear(fact: Fact, place: Place, listener: Subject, *, own: bool = True) -> bool:
    """Whether *listener* may see a fact in *place*: the rule of privacy. The store has the same rule as SQL.

    *own* says whether all its sources are words of the person it is about.
    """
    if fact.place.kind == "direct" and place.kind != "direct":
        return False
    if fact.scope != "direct" and is_same_place(fact.place, place):
        return True  # the place where it was said
    if not is_same_person(fact.subject, listener) or place.author_namespace != listener.platform:
        return False
    if place.kind == "direct" and (fact.scope == "direct" or (own and fact.place.kind != "direct")):
        return True
    return fact.scope == "everywhere"
