"""Whoever does what a finding says has a program that still runs: what ran in a fixture runs in its twin.

The twins of fixtures, in which advice was followed, are run on the CPU as if it were an accelerator (see
`tests.accelerator`). Advice that raises, such as to take `.cpu()` out before `.numpy()`, fails here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.accelerator import run
from torchlint.dev import ROOT

TWINS = sorted((ROOT / "fixtures").glob("*/*.followed.py"))

# What a twin is to raise, or raises for the arguments that are made up for it; by fixture and function.
ALLOWED = {
    ("TL102_loader_without_pinned_memory/bad", "visible_options"): "it goes by other names of a batch",
    ("TL202_item_in_hot_loop/bad_call_graph", "training_step"): "it is given the number of the step",
    ("TL202_item_in_hot_loop/bad_kinds", "Sources.forward"): "it wants one dimension",
    (
        "TL202_item_in_hot_loop/bad_noticed",
        "one_dimension_of_helper",
    ): "an unsafe fix: the shape is not known",
    ("TL203_host_copy_in_hot_loop/bad_slices", "evaluate"): "nothing is found in random scores",
    ("TL206_data_dependent_shape/bad", "train"): "labels of floating point have no `ignore_index`",
    ("TL206_data_dependent_shape/bad_numbers", "Resized.forward"): "it wants another size",
    ("TL205_branch_on_tensor/bad_one_of_set", "Schedule.step"): "it is declared to get a number",
    ("TL206_data_dependent_shape/bad_placed_by_callers", "hits"): "the mask has fewer dimensions",
    ("TL206_data_dependent_shape/bad_placed_by_callers", "positives"): "the mask has fewer dimensions",
    ("TL206_data_dependent_shape/bad_set_of_steps", "Schedule.level_of"): "it is declared to get a number",
    ("TL206_data_dependent_shape/bad_spellings", "train"): "it wants another size",
    ("TL208_repeated_transfer/bad_modules", "Perceptual.forward"): "its module is made up, and was not moved",
    ("TL409_modules_in_plain_list/bad", "Heads.forward"): "the tasks are names, not a tensor",
    ("TL412_tensor_indexed_in_loop/bad", "similarities"): "`vmap` looks behind the pretence",
    ("TL505_per_parameter_update_loop/bad_averages", "Averaged.step"): "the parameters are no list",
    ("TL505_per_parameter_update_loop/bad_gradients", "clip_gradient"): "the limit is no tensor",
}
# What says nothing of the advice: what torch for the CPU lacks, and a machine that is busy.
SILENT = (
    *("TimeoutError", "AssertionError: Torch not compiled", "ValueError: Default process group"),
    "AttributeError: 'AudioDecoder'",  # made up in the place of an import
)
# The fixtures by which it is told that the pretence works, and how many of their functions run at least.
SAMPLE, LEAST = "TL205_branch_on_tensor", 15

_ran = cache(run)


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: f"{path.parent.name}/{path.name.partition('.')[0]}")
def test_what_ran_still_runs(twin: Path) -> None:
    name = twin.name.partition(".")[0]
    before, after = _ran(twin.with_name(f"{name}.py")), run(twin)
    raised = {
        (function, kind): after[function][kind]
        for function, kinds in before.items()
        for kind, error in kinds.items()
        if not error and (raises := after.get(function, {}).get(kind, "")) and not raises.startswith(SILENT)
    }
    allowed = {function for fixture, function in ALLOWED if fixture == f"{twin.parent.name}/{name}"}
    assert not {key: error for key, error in raised.items() if key[0] not in allowed}


def test_most_functions_can_be_run() -> None:
    twins = [twin for twin in TWINS if twin.parent.name == SAMPLE]
    tried = [_ran(twin.with_name(f"{twin.name.partition('.')[0]}.py")) for twin in twins]
    assert sum(not all(kinds.values()) for each in tried for kinds in each.values()) >= LEAST
