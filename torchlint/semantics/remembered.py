"""Answers of the model that are kept as long as the model of the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
Owner = TypeVar("Owner")
Answer = TypeVar("Answer")

_UNASKED: Any = object()


def remembered(
    work_out: Callable[Concatenate[Owner, P], Answer],
) -> Callable[Concatenate[Owner, P], Answer]:
    """Keep what a function says of a module for the same arguments, which are given by position.

    The function is given the module first, or is a method of a part that has it as its ``module``.
    Nothing is kept of what is asked while values are being worked out, since it may rest on half an answer
    (see `torchlint.semantics.fixpoint`).
    """

    @wraps(work_out)
    def asked(owner: Owner, /, *arguments: P.args, **options: P.kwargs) -> Answer:
        assert not options
        module: Any = getattr(owner, "module", owner)
        answers = module.answers.setdefault(work_out, {})
        found: Answer = answers.get((owner, arguments), _UNASKED)
        if found is _UNASKED:
            found = work_out(owner, *arguments, **options)
            if not module.fixpoint.busy:
                answers[owner, arguments] = found
        return found

    return asked
