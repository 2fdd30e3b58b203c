"""The switches of torch's backends: where they are set, and which hold at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchlint.rules.precision.backendflags import BackendFlags
from torchlint.semantics.module import Module

HEAD = "import torch\nimport torch.backends.cudnn as cudnn\nfrom lightning import Trainer\n"

WRITES = {
    "an assignment": ("torch.backends.cudnn.benchmark = True", "benchmark=True"),
    "an alias": ("cudnn.deterministic = False", "deterministic=False"),
    "a number": ("cudnn.benchmark = 1", "benchmark=True"),
    "a constant": ("fast = True\ncudnn.benchmark = fast", "benchmark=True"),
    "an option": ("cudnn.benchmark = args.fast", "benchmark=None"),
    "a pair": ("cudnn.benchmark, cudnn.deterministic = True, False", "benchmark=True deterministic=False"),
    "a pair of an option": (
        "cudnn.benchmark, cudnn.deterministic = (True, False) if fast else (False, True)",
        "benchmark=None deterministic=None",
    ),
    "a chain": ("cudnn.benchmark = cudnn.deterministic = True", "benchmark=True deterministic=True"),
    "an annotation": ("cudnn.benchmark: bool = True", "benchmark=True"),
    "a function": ("torch.use_deterministic_algorithms(True)", "use_deterministic_algorithms=True"),
    "a function by keyword": (
        "torch.use_deterministic_algorithms(warn_only=True, mode=False)",
        "use_deterministic_algorithms=False",
    ),
    "an old function": ("torch.set_deterministic(True)", "use_deterministic_algorithms=True"),
    "a block": ("with cudnn.flags(benchmark=True): pass", "benchmark=True"),
    "a trainer": ("Trainer(benchmark=True, deterministic='warn')", "benchmark=True deterministic=True"),
    "TF32": ("torch.backends.cuda.matmul.allow_tf32 = True", "allow_tf32=True"),
    "another object": ("other.benchmark = True", ""),
    "a read": ("x = cudnn.benchmark", ""),
}


@pytest.mark.parametrize(("code", "expected"), WRITES.values(), ids=WRITES)
def test_where_switches_are_set(code: str, expected: str, semantic_model: Callable[[str], Module]) -> None:
    writes = BackendFlags.of(semantic_model(f"{HEAD}{code}\n")).writes
    assert " ".join(f"{w.switch.rpartition('.')[2]}={w.value}" for w in writes) == expected


FAST, EXACT = "cudnn.benchmark = True", "cudnn.deterministic = True"
CONFLICTS = {
    "one behind the other": (f"{FAST}\n{EXACT}", True),
    "taken back": (f"{FAST}\n{EXACT}\ncudnn.benchmark = False", False),
    "taken back before": (f"{EXACT}\ncudnn.deterministic = False\n{FAST}", False),
    "set again": (f"cudnn.benchmark = False\n{EXACT}\n{FAST}", True),
    "perhaps taken back": (f"{FAST}\n{EXACT}\nif args.slow:\n    cudnn.benchmark = False", True),
    "taken back together": (
        f"{FAST}\nif args.seed:\n    {EXACT}\n    cudnn.benchmark = False",
        False,
    ),
    "one on a condition": (f"if args.seed:\n    {EXACT}\n{FAST}", True),
    "on two conditions": (f"if args.seed:\n    {EXACT}\nif args.fast:\n    {FAST}", False),
    "either or": (f"if args.seed:\n    {EXACT}\nelse:\n    {FAST}", False),
    "the function is left before": (
        f"def setup(exact):\n    if exact:\n        {EXACT}\n        return\n    {FAST}\nsetup(args.exact)",
        False,
    ),
    "an error is raised before": (
        f"if args.seed:\n    {EXACT}\nelse:\n    raise ValueError\n{FAST}",
        True,
    ),
    "in a helper": (f"def seed():\n    {EXACT}\nseed()\n{FAST}", True),
    "in a helper that takes it back": (
        f"def seed():\n    {EXACT}\n    cudnn.benchmark = False\n{FAST}\nseed()",
        False,
    ),
    "in a helper that nothing calls": (f"def seed():\n    {EXACT}\n{FAST}", False),
    "in two helpers": (
        f"def seed():\n    {EXACT}\ndef fast():\n    {FAST}\ndef run():\n    seed()\n    fast()",
        True,
    ),
    "in helpers of one that is called": (f"def main():\n    {EXACT}\n{FAST}\nmain()", True),
    "not known": (f"{EXACT}\n{FAST}\ncudnn.deterministic = args.exact", False),
    "a block": ("with cudnn.flags(benchmark=True, deterministic=True): pass", True),
    "two blocks": (
        "with cudnn.flags(benchmark=True): pass\nwith cudnn.flags(deterministic=True): pass",
        False,
    ),
    "a block and the rest": (f"{EXACT}\nwith cudnn.flags(benchmark=True, deterministic=False): pass", False),
    "a trainer": ("Trainer(benchmark=True, deterministic=True)", True),
}


@pytest.mark.parametrize(("code", "expected"), CONFLICTS.values(), ids=CONFLICTS)
def test_what_contradicts_itself(code: str, expected: bool, semantic_model: Callable[[str], Module]) -> None:
    assert (BackendFlags.of(semantic_model(f"{HEAD}{code}\n")).conflict is not None) is expected
