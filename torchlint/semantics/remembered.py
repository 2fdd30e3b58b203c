"""Memoization of the model's questions: how functions and parts of the model ask the fixpoint.

Names, values, calls and callers reach the same place in many ways: with ``b = a + a`` and ``c = b + b`` there
are two ways from ``c`` to ``b``, and four to ``a``. Each question is therefore computed once, and none needs
a bound on how far it goes.

There is one memory, that of the module's `torchlint.semantics.fixpoint.Fixpoint`: ``settled`` has the answers
that are final, ``leaning`` those that depend on questions that are still open, with what these said. A
question that may lead back to itself is `solved`: it is one of the fixpoint's own questions and takes part in
the search for circles. Any other is `remembered`: a function of the questions that it asks, which takes no
part in a circle itself, and is kept, computed again or settled as these are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from torchlint.effort import ExhaustedError
from torchlint.semantics.dependencies import noted
from torchlint.semantics.fixpoint import Answers, Resting
from torchlint.semantics.linked import elsewhere

P = ParamSpec("P")
Owner = TypeVar("Owner")
Answer = TypeVar("Answer")

_UNASKED: Any = object()
_NONE: Any = object()
"""Stands for None in the tables of the fixpoint, where that means that nothing is known yet."""


def in_charge(owner: Owner, module: Any, argument: object) -> Owner:
    """Return who answers for what is asked about: the same owner in the file that this belongs to."""
    node = elsewhere(module.tree, argument)
    return owner if node is None else _counterpart(owner, module, node)


def _counterpart(owner: Owner, module: Any, node: Any) -> Owner:
    linked: Any = owner
    found: Owner = linked.counterpart(module.link.home(node))
    return found


def remembered(
    work_out: Callable[Concatenate[Owner, P], Answer],
) -> Callable[Concatenate[Owner, P], Answer]:
    """Keep what a function says of a module for the same arguments.

    The function is given the module first, or is a method of a part that has it as its ``module``. It must
    not lead back to itself but by way of questions that the fixpoint solves.
    """

    @wraps(work_out)
    def asked(owner: Owner, /, *arguments: P.args, **options: P.kwargs) -> Answer:
        module: Any = getattr(owner, "module", owner)
        effort, fixpoint = module.tree.effort, module.fixpoint
        effort.spent += 1
        key: Any = (work_out, owner, *arguments)
        if options:
            key = (*key, *sorted(options.items()))
        known: Any = fixpoint.settled.get(key, _UNASKED)
        if known is not _UNASKED:
            if known.__class__ is Resting:
                noted.files |= known[1]
                known = known[0]
            return known  # type: ignore[no-any-return]
        if module.link is not None and arguments:
            # Only what is not known yet may be another file's to answer.
            node = elsewhere(module.tree, arguments[0])
            if node is not None:
                effort.spent -= 1
                return asked(_counterpart(owner, module, node), *arguments, **options)
        if effort.spent > effort.limit:
            raise ExhaustedError
        found: Answer
        if module.link is None and not fixpoint.open:
            # What is computed now depends on no open question, and on no other file.
            found = fixpoint.settled[key] = work_out(owner, *arguments, **options)
            return found
        leaning = fixpoint.leaning.get(key)
        if leaning is not None:
            grounds, found, files = leaning
            if fixpoint.still(grounds):
                noted.files |= files
                return found
        begin = len(fixpoint.asked)
        outer, noted.files = noted.files, 0
        try:
            found = work_out(owner, *arguments, **options)
            files = noted.files
        finally:
            noted.files |= outer
        if len(fixpoint.asked) > begin:
            fixpoint.leaning[key] = fixpoint.grounds_since(begin), found, files
        elif files:
            fixpoint.settled[key] = Resting((found, files))
        else:
            fixpoint.settled[key] = found
        return found

    return asked


def solved(
    nothing: Any,
) -> Callable[[Callable[Concatenate[Owner, Any, P], Answer]], Callable[Concatenate[Owner, Any, P], Answer]]:
    """Keep what a function says of a node, though it may ask itself about the same node again.

    Like `remembered`; the second argument is the node, and what comes behind it can be put into words.
    The questions of a circle start from ``nothing``, which is neutral where answers meet, and are gone
    through until they agree.
    """
    bottom = _NONE if nothing is None else nothing
    answers: Answers[Any] = Answers(nothing=bottom, unknown=bottom)

    def decorate(
        work_out: Callable[Concatenate[Owner, Any, P], Answer],
    ) -> Callable[Concatenate[Owner, Any, P], Answer]:
        label = f"{work_out.__module__}.{work_out.__qualname__}"

        @wraps(work_out)
        def asked(owner: Owner, node: Any, /, *arguments: P.args, **options: P.kwargs) -> Answer:
            assert not options
            module: Any = getattr(owner, "module", owner)
            module.tree.effort.spend(1)
            fixpoint = module.fixpoint
            key = (label, node, *arguments)
            found: Any = fixpoint.settled.get(key, _UNASKED)
            if found is _UNASKED:
                if module.link is not None:
                    owner = in_charge(owner, module, node)

                def once(_: object) -> Any:
                    said = work_out(owner, node, *arguments, **options)
                    return _NONE if said is None else said

                found = fixpoint.ask(key, once, answers)
            elif found.__class__ is Resting:
                noted.files |= found[1]
                found = found[0]
            return None if found is _NONE else found  # type: ignore[return-value]

        return asked

    return decorate
