"""Answers of the model that are kept as long as the model of the file.

Whatever goes through names, values, calls or callers meets the same place by many ways: ``b = a + a``,
``c = b + b`` has two ways from ``c`` to each ``b``, and four to each ``a``. So no such question is
worked out twice. One that may lead back to itself is `solved`, any other one `remembered`; with a bound on
how far it goes, that is one of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from torchlint.semantics.fixpoint import Answers

P = ParamSpec("P")
Owner = TypeVar("Owner")
Answer = TypeVar("Answer")

_UNASKED: Any = object()


def remembered(
    work_out: Callable[Concatenate[Owner, P], Answer],
) -> Callable[Concatenate[Owner, P], Answer]:
    """Keep what a function says of a module for the same arguments.

    The function is given the module first, or is a method of a part that has it as its ``module``.
    What is asked while values are being worked out may rest on half an answer (see
    `torchlint.semantics.fixpoint`): then it is kept together with the open questions that it rests on, and
    worked out again if one of them says something else. What rests on none is kept for good.
    """

    @wraps(work_out)
    def asked(owner: Owner, /, *arguments: P.args, **options: P.kwargs) -> Answer:
        module: Any = getattr(owner, "module", owner)
        module.tree.effort.spent += 1
        answers = module.answers.get(work_out)
        if answers is None:
            answers = module.answers[work_out] = {}
        key = (owner, arguments, *sorted(options.items())) if options else (owner, arguments)
        found: Answer = answers.get(key, _UNASKED)
        if found is not _UNASKED:
            return found
        module.tree.effort.spend(0)
        fixpoint = module.fixpoint
        if not fixpoint.busy:
            found = answers[key] = work_out(owner, *arguments, **options)
            return found
        leaning = fixpoint.leaning.get((work_out, key))
        if leaning is not None:
            grounds, found = leaning
            if fixpoint.still(grounds):
                return found
        begin = fixpoint.begin()
        found = work_out(owner, *arguments, **options)
        grounds = fixpoint.grounds_since(begin)
        if grounds:
            fixpoint.leaning[work_out, key] = grounds, found
        else:
            answers[key] = found
        return found

    return asked


def solved(
    nothing: Any,
) -> Callable[[Callable[Concatenate[Owner, Any, P], Answer]], Callable[Concatenate[Owner, Any, P], Answer]]:
    """Keep what a function says of a node, though it may ask itself about the same node again.

    Like `remembered`; the second argument is the node, and what comes behind it can be put into words.
    The questions of a circle start from ``nothing``, which is neutral where answers meet, and are gone
    through until they agree. No answer may be None.
    """
    answers: Answers[Any] = Answers(nothing=nothing, unknown=nothing)

    def decorate(
        work_out: Callable[Concatenate[Owner, Any, P], Answer],
    ) -> Callable[Concatenate[Owner, Any, P], Answer]:
        label = f"{work_out.__module__}.{work_out.__qualname__}"

        @wraps(work_out)
        def asked(owner: Owner, node: Any, /, *arguments: P.args, **options: P.kwargs) -> Answer:
            assert not options
            module: Any = getattr(owner, "module", owner)
            module.tree.effort.spend(1)

            def once(_: object) -> Answer:
                return work_out(owner, node, *arguments, **options)

            found: Answer = module.fixpoint.ask((label, node, *arguments), once, answers)
            return found

        return asked

    return decorate
