"""The scratch place of a command: nothing is left of it, however the command ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from torchlint.verify import remains

_LONGEST = 40
"""Characters that the path above a scratch place may have: those of sockets, which loader workers make in
their temporary folder, must not exceed about a hundred."""


class Scratch:
    """A folder for everything that a command's programs write.

    A guard watches over it, a small process of its own: when this one ends, even if it is killed, the guard
    ends what still runs there and removes the folder.
    """

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir()).resolve()
        if len(str(base)) > _LONGEST and os.access("/tmp", os.W_OK):
            base = Path("/tmp").resolve()
        self.folder = Path(tempfile.mkdtemp(prefix="torchlint-", dir=base))
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", remains.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Neither Ctrl-C nor the end of a terminal reaches it there.
            start_new_session=True,
            cwd="/",
        )

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, *_: object) -> None:
        self._guard.communicate()
