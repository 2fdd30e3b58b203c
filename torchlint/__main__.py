"""``python -m torchlint``."""

import os
import sys

if __name__ == "__main__":
    # ``-m`` puts the working directory in front of the path. What the project that is checked has there must
    # not be imported instead of what is installed, nor be taken for an installed rule pack.
    if not getattr(sys.flags, "safe_path", False) and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
        del sys.path[0]

    from torchlint.cli import run

    run()
