"""Which calls take the arguments of trainers that were renamed, and what sets their precision."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.precision.trainers import given_up, left_in_full_precision, taker
from torchlint.semantics import model
from torchlint.semantics.module import Module
from torchlint.syntax import SyntaxTree

HEAD = """
from dataclasses import dataclass
import accelerate, transformers, trl
from transformers import Trainer, TrainingArguments as Args
from transformers.training_args_seq2seq import Seq2SeqTrainingArguments

@dataclass
class Own(Args):
    no_cuda: bool = False

class Plain(Trainer):
    pass

class Mixed(Mixin, Trainer):
    pass

class Built(Trainer):
    def __init__(self, tokenizer):
        super().__init__(processing_class=tokenizer)

class Further(Built):
    def __init__(self, tokenizer):
        super().__init__(tokenizer=tokenizer)
"""


def last_call(program: str) -> tuple[Module, cst.Call]:
    """The outermost call of the last line of a program."""
    tree = SyntaxTree(HEAD + program)
    settings = LintSettings()
    module = model.build(tree, settings)
    line = tree.root.body[-1]
    return module, next(call for call in tree.nodes(cst.Call) if tree.contains(line, call))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("Args('out')", "transformers.TrainingArguments"),
        ("Seq2SeqTrainingArguments('out')", "transformers.TrainingArguments"),
        ("transformers.Seq2SeqTrainingArguments('out')", "transformers.TrainingArguments"),
        ("trl.DPOConfig('out')", "transformers.TrainingArguments"),
        ("trl.ModelConfig('out')", None),
        ("Own('out')", "transformers.TrainingArguments"),
        ("Plain()", "transformers.Trainer"),
        ("Mixed()", None),
        ("Built(1)", None),
        ("transformers.trainer.Trainer()", "transformers.Trainer"),
        ("accelerate.Accelerator()", "accelerate.Accelerator"),
        ("transformers.AutoModel.from_pretrained('x')", "transformers.PreTrainedModel.from_pretrained"),
        (
            "transformers.LlamaForCausalLM.from_pretrained('x')",
            "transformers.PreTrainedModel.from_pretrained",
        ),
        ("transformers.AutoTokenizer.from_pretrained('x')", None),
        ("transformers.pipeline('x')", "transformers.pipeline"),
        ("other.Trainer()", None),
    ],
)
def test_what_takes_the_arguments(code: str, name: str | None) -> None:
    assert taker(*last_call(code)) == name


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("Args(no_cuda=True, evaluation_strategy='no', bf16=True)", ["no_cuda", "evaluation_strategy"]),
        ("Own(no_cuda=True, evaluation_strategy='no')", ["evaluation_strategy"]),
        ("Args(optim='adamw_hf')", ["optim"]),
        ("Args(optim='adamw_torch')", []),
        ("Args('out', **options)", []),
        ("Args('out', **{'no_cuda': True, 'seed': 1})", ["no_cuda"]),
        ("options = dict(no_cuda=True, seed=1)\nArgs('out', **options)", ["no_cuda"]),
        ("options = {'xpu_backend': 'ccl', **more}\nArgs('out', **options)", ["xpu_backend"]),
        ("options = dict(no_cuda=True)\nArgs('out', **options)\nArgs('other', **options)", []),
        ("options = load(no_cuda=True)\nArgs('out', **options)", []),
    ],
)
def test_arguments_that_were_given_up(code: str, found: list[str]) -> None:
    assert [given.row.argument for given in given_up(*last_call(code))] == found


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("Args('out', num_train_epochs=3)", True),
        ("Args('out', per_device_eval_batch_size=64)", False),
        ("trainer.train()\nArgs('out')", True),
        ("Own('out', learning_rate=1e-4)", True),
        ("Args('out', learning_rate=0.1, bf16=False)", False),
        ("Args('out', learning_rate=0.1, **options)", False),
        ("Args('out', learning_rate=0.1, deepspeed='zero3.json')", False),
        ("trl.SFTConfig('out', learning_rate=0.1)", False),
        ("args.bf16 = True\nArgs('out', optim='sgd')", False),
        ("model = model.half()\nArgs('out', optim='sgd')", False),
        (
            "m = transformers.AutoModel.from_pretrained('x', load_in_4bit=True)\nArgs('out', optim='sgd')",
            False,
        ),
        ("import torch\nm.to(torch.bfloat16)\nArgs('out', optim='sgd')", False),
        ("import torch\nm.to(torch.device('cuda'))\nArgs('out', max_steps=9)", True),
    ],
)
def test_what_is_left_in_full_precision(code: str, left: bool) -> None:
    assert left_in_full_precision(*last_call(code)) is left
