"""Stand-ins for libraries: what is told under an old name is told under the new one."""

from __future__ import annotations

import sys

import pytest

from benchmarks.fuzz.execution import run

HEAD = "from transformers import *\nfrom torchvision import models\nfrom accelerate import Accelerator\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "TrainingArguments('out', evaluation_strategy='no', no_cuda=True).to_dict()",
            "TrainingArguments('out', eval_strategy='no', use_cpu=True).to_dict()",
        ),
        ("TrainingArguments(adafactor=True).to_dict()", "TrainingArguments(optim='adafactor').to_dict()"),
        ("TrainingArguments(adafactor=False).to_dict()", "TrainingArguments().to_dict()"),
        ("Trainer(1, tokenizer=2).described()", "Trainer(1, processing_class=2).described()"),
        ("Accelerator(fp16=True).mixed_precision", "Accelerator(mixed_precision='fp16').mixed_precision"),
        (
            "models.resnet18(True, progress=False).described()",
            "models.resnet18(weights='IMAGENET1K_V1', progress=False).described()",
        ),
        ("models.resnet18(pretrained=False).described()", "models.resnet18(weights=None).described()"),
    ],
)
def test_old_and_new_names_say_the_same(old: str, new: str) -> None:
    before, after = (run(f"{HEAD}results = {{'told': {code}}}") for code in (old, new))
    assert before.error is None
    assert before.results == after.results


def test_what_is_told_otherwise_is_another_result() -> None:
    results = [
        run(f"{HEAD}results = {{'told': TrainingArguments(no_cuda={flag}).to_dict()}}").results
        for flag in ("True", "False")
    ]
    assert results[0] != results[1]


def test_nothing_stays_importable() -> None:
    before = sys.modules.get("transformers")
    assert run("import transformers\nresults = {'name': transformers.__name__}").results == {
        "name": "transformers"
    }
    assert sys.modules.get("transformers") is before
