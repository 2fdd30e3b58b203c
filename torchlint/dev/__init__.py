"""For people who work on torchlint: ``python -m torchlint.dev`` starts rules and writes generated docs.

The commands expect to run from a checkout; nothing in the rest of torchlint imports this package.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the checkout."""
