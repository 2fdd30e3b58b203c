"""Messages between a measuring process and the one that steers it: JSON lines through two pipes."""

from __future__ import annotations

import json
import os
from typing import Any


class Channel:
    """One end of the two pipes."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._in = os.fdopen(incoming, "r", encoding="utf-8")
        self._out = os.fdopen(outgoing, "w", encoding="utf-8")

    def receive(self) -> dict[str, Any] | None:
        """Return the next message; None once the other side is gone."""
        line = self._in.readline()
        if not line:
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, **message: Any) -> None:
        """Send a message; silently lost once the other side is gone."""
        try:
            self._out.write(json.dumps(message) + "\n")
            self._out.flush()
        except BrokenPipeError:
            pass
