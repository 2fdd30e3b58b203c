"""``torchlint advise``: what could make programs as a whole faster or smaller."""

from __future__ import annotations

from typing import Any

from torchlint import options
from torchlint.commands import check

# What is about faults of lines, about adopting a check of them, or about one run after the other.
_LEFT_OUT = frozenset(
    {"add_noqa", "advice", "baseline", "changed_since", "exit_non_zero_on_fix", "exit_zero", "fail_on"}
    | {"fix_only", "ignore_baseline", "report", "show_files", "show_settings", "staged", "statistics"}
    | {"timing", "update_baseline", "watch"}
)


def _run(**parameters: Any) -> None:
    check.check(**parameters, alone=True)


command = check.Command(
    "advise",
    callback=_run,
    help="Show what could make the programs at PATH faster or let them use less memory as a whole, such as "
    "mixed precision, TF32 or fused optimizers: what gained most in its benchmark first, with the change and "
    "a command that measures it. `check` shows it after its findings, one line each.\n\n"
    "Exits with 0, or with 2 on misuse or an internal error.",
    params=check.parameters(
        name for name, setting in options.settings().items() if setting.cli and name not in _LEFT_OUT
    ),
)
