"""Which releases there are of the packages whose version a rule may ask for.

A declaration such as ``>2.0`` or ``!=2.1.0`` needs them to say which release is the lowest it admits; a
newer release than these is only ever named by the declaration itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# The last patch of each minor release, from the oldest that torchlint knows anything of.
_LAST_PATCHES = {
    "torch": """
        1.7.1 1.8.1 1.9.1 1.10.2 1.11.0 1.12.1 1.13.1
        2.0.1 2.1.2 2.2.2 2.3.1 2.4.1 2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0
    """,
    "torchvision": """
        0.8.2 0.9.1 0.10.1 0.11.3 0.12.0 0.13.1 0.14.1 0.15.2 0.16.2 0.17.2 0.18.1 0.19.1 0.20.1 0.21.0
        0.22.1 0.23.0 0.24.1 0.25.0 0.26.0 0.27.1 0.28.0 0.29.2
    """,
    "torchaudio": """
        2.0.2 2.1.2 2.2.2 2.3.1 2.4.1 2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0
    """,
    "transformers": """
        4.0.1 4.1.1 4.2.2 4.3.3 4.4.2 4.5.1 4.6.1 4.7.0 4.8.2 4.9.2 4.10.3 4.11.3 4.12.5 4.13.0 4.14.1 4.15.0
        4.16.2 4.17.0 4.18.0 4.19.4 4.20.1 4.21.3 4.22.2 4.23.1 4.24.0 4.25.1 4.26.1 4.27.4 4.28.1 4.29.2
        4.30.2 4.31.0 4.32.1 4.33.3 4.34.1 4.35.2 4.36.2 4.37.2 4.38.2 4.39.3 4.40.2 4.41.2 4.42.4 4.43.4
        4.44.2 4.45.2 4.46.3 4.47.1 4.48.3 4.49.0 4.50.3 4.51.3 4.52.4 4.53.3 4.54.1 4.55.4 4.56.2 4.57.6
        5.0.0 5.1.0 5.2.0 5.3.0 5.4.0 5.5.4 5.6.2 5.7.0 5.8.1 5.9.0 5.10.4 5.11.0 5.12.1 5.13.1 5.14.1 5.15.1
        5.16.1 5.17.0 5.18.0 5.19.0 5.20.2 5.21.1 5.22.2 5.23.0
    """,
    "accelerate": """
        0.4.0 0.5.1 0.6.2 0.7.1 0.8.0 0.9.0 0.10.0 0.11.0 0.12.0 0.13.2 0.14.0 0.15.0 0.16.0 0.17.1 0.18.0
        0.19.0 0.20.3 0.21.0 0.22.0 0.23.0 0.24.1 0.25.0 0.26.1 0.27.2 0.28.0 0.29.3 0.30.1 0.31.0 0.32.1
        0.33.0 0.34.2 1.0.1 1.1.1 1.2.1 1.3.0 1.4.0 1.5.2 1.6.0 1.7.0 1.8.1 1.9.0 1.10.1 1.11.0 1.12.0 1.13.0
        1.14.0 1.15.0
    """,
}


def minor(version: str) -> str:
    """Return the minor release that a release belongs to: ``2.4`` for ``2.4.1``."""
    return version.rpartition(".")[0]


def _all(last_patches: str) -> tuple[str, ...]:
    """Return all releases of the minor releases whose last patches are given, oldest first."""
    return tuple(
        f"{minor(last)}.{patch}"
        for last in last_patches.split()
        for patch in range(int(last.rpartition(".")[2]) + 1)
    )


RELEASES: Final[Mapping[str, tuple[str, ...]]] = {name: _all(text) for name, text in _LAST_PATCHES.items()}
"""The releases of each package, oldest first. Some of the patches were never published; none is missing."""
