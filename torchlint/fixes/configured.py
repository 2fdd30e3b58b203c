"""Edits of configuration files: they set one key, in the style of its neighbours."""

from __future__ import annotations

from torchlint.diagnostics import Applicability, Fix
from torchlint.documents import Scalar, added, replaced, written
from torchlint.semantics.configured import Configured


def configure(setting: Configured, value: object, *, risk: str | None) -> Fix | None:
    """Return a fix that gives a key another value, or adds it; None where that cannot be done without risk.

    It is safe only if there is no ``risk``, and if no other place of a program has to do with the setting.
    """
    entry = setting.entry
    edit = replaced(entry, value) if isinstance(entry, Scalar) else added(entry, setting.key, value)
    if edit is None:
        return None
    if risk is None and not setting.exclusive:
        risk = "other programs, or other places of this one, may read the setting"
    grade = Applicability.SAFE if risk is None else Applicability.UNSAFE
    return Fix(f"Set `{spelt(setting, value)}`", (edit,), grade, risk=risk)


def spelt(setting: Configured, value: object) -> str:
    """Return a key with its value as the file would have them."""
    key = f'"{setting.key}"' if setting.entry.document.is_json else setting.key
    return f"{key}: {written(value)}"
