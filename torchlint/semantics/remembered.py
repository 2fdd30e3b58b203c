"""Answers of functions of the model that are kept as long as the model of the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

P = ParamSpec("P")
Answer = TypeVar("Answer")

_UNASKED: Any = object()


def remembered(
    work_out: Callable[Concatenate[Module, P], Answer],
) -> Callable[Concatenate[Module, P], Answer]:
    """Keep what a function says of a module for the same arguments, which are given by position.

    Nothing is kept of what is asked while values are being worked out, since it may rest on half an answer
    (see `torchlint.semantics.fixpoint`).
    """

    @wraps(work_out)
    def asked(module: Module, *arguments: P.args, **options: P.kwargs) -> Answer:
        assert not options
        answers = module.answers.setdefault(work_out, {})
        found: Answer = answers.get(arguments, _UNASKED)
        if found is _UNASKED:
            found = work_out(module, *arguments, **options)
            if not module.fixpoint.busy:
                answers[arguments] = found
        return found

    return asked
