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
    """Raises ``Stop``, and ends the process if the program swallows that and comes back."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> NoReturn:
        """Leave the program for good."""
        if self.stopped:
            os._exit(0)
        self.stopped = True
        raise Stop
