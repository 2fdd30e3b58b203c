"""Where one step of a program ends and the next begins, and how a program is stopped there."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

Boundary = Callable[[], None]
"""Called by the program, through a hook or directly, whenever a step is done."""


class Stop(BaseException):
    """Ends the program at a boundary. No ``except Exception`` of the program catches it."""


class Stopper:
    """Raises ``Stop``, and ends the process if the program swallows that and comes back.

    ``before`` is called once, ahead of it: what is to be said must not depend on how the program takes it.
    """

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self.stopped = False
        self._before = before

    def stop(self) -> NoReturn:
        """Leave the program for good."""
        if self.stopped:
            os._exit(0)
        self.stopped = True
        self._before()
        raise Stop
