"""Programs on which the evaluator once failed."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.semantics import model
from torchlint.semantics.module import Module
from torchlint.semantics.values import Device, Kind
from torchlint.syntax import SyntaxTree


def _model(program: str) -> Module:
    return model.build(SyntaxTree(program), LintSettings())


def test_an_iterator_that_is_its_own_iterable_ends() -> None:
    module = _model(
        "class Counting:\n"
        "    def __iter__(self):\n"
        "        return self\n"
        "    def __next__(self):\n"
        "        return 3\n"
        "for number in Counting():\n"
        "    print(number)\n"
    )
    (read,) = module.names.reads("number")
    assert module.value(read).kind is Kind.NUMBER


def test_a_list_filled_by_append_hands_on_its_items() -> None:
    module = _model(
        "import torch\n"
        "def pair(x):\n"
        "    found = []\n"
        "    found.append(torch.relu(x))\n"
        "    return found\n"
        "first, second = pair(torch.ones(2))\n"
        "print(second)\n"
    )
    (read,) = module.names.reads("second")
    assert module.value(read).kind is Kind.TENSOR


@pytest.mark.parametrize(
    ("over", "moved"),
    [
        ("key, value in batch.items()", "value.to(device)"),
        ("key in batch", "batch[key].to(device)"),
        ("key in batch.keys()", "batch[key].cuda()"),
    ],
)
def test_a_loop_moves_the_items_of_a_dict(over: str, moved: str) -> None:
    """In front of the loop they are where they were made, and what is no tensor stays as it is."""
    module = _model(
        "import torch\n"
        "def step(states, device):\n"
        "    batch = {'states': torch.tensor(states), 'name': 'a'}\n"
        "    before = batch['states']\n"
        f"    for {over}:\n"
        f"        batch[key] = {moved}\n"
        "    return before, batch['states'], batch['name']\n"
    )
    (reads,) = (node for node in module.tree.nodes(cst.Tuple) if len(node.elements) == 3)
    before, after, name = (module.value(element.value) for element in reads.elements)
    assert (before.device, after.device) == (Device.CPU, Device.ACCELERATOR)
    assert name.kind is Kind.STRING


def test_what_an_item_is_replaced_by_counts() -> None:
    module = _model(
        "import torch\n"
        "class Detect(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        self.grid = [torch.zeros(1) for _ in range(3)]\n"
        "        self.base = [torch.zeros(1) for _ in range(3)]\n"
        "    def forward(self, x, i):\n"
        "        self.grid[i] = torch.ones(3).to(x.device)\n"
        "        return self.grid[i], self.base[i]\n"
    )
    items = {module.source(node): module.value(node) for node in module.tree.nodes(cst.Subscript)}
    assert items["self.grid[i]"].kind is items["self.base[i]"].kind is Kind.TENSOR
    assert items["self.grid[i]"].device is Device.UNKNOWN
    assert items["self.base[i]"].device is Device.CPU


def test_what_calls_give_is_believed_before_an_annotation() -> None:
    module = _model(
        "import torch\n"
        "def decayed(mean, new: torch.Tensor, decay: torch.Tensor, rate: torch.Tensor):\n"
        "    return mean.mul_(decay).add_(new, alpha=rate)\n"
        "class Quantizer(torch.nn.Module):\n"
        "    def __init__(self, decay: float = 0.99):\n"
        "        self.decay = decay\n"
        "    def forward(self, x, rate):\n"
        "        return decayed(self.size, x, self.decay, rate)\n"
    )
    kinds = [module.value(read).kind for name in ("decay", "rate") for read in module.names.reads(name)]
    assert kinds[0] is Kind.NUMBER
    (alpha,) = (arg.value for arg in module.tree.nodes(cst.Arg) if arg.keyword is not None)
    assert module.value(alpha).kind is Kind.TENSOR


def test_every_call_of_a_program_that_feeds_on_itself_is_evaluated() -> None:
    module = _model(
        "import torch\n"
        "def f(x, n):\n"
        "    if n:\n"
        "        return g(x, n)\n"
        "    return x.relu()\n"
        "def g(x, n):\n"
        "    return f(x, n - 1)\n"
        "y = torch.ones(2)\n"
        "while True:\n"
        "    y = f(y, 2)\n"
        "    z = g(y, 2)\n"
    )
    kinds = {module.source(call): module.value(call).kind for call in module.tree.nodes(cst.Call)}
    assert kinds["f(y, 2)"] is Kind.TENSOR
    assert kinds["g(y, 2)"] is Kind.TENSOR


def test_a_number_given_to_a_forward_is_not_taken_for_a_tensor() -> None:
    module = _model(
        "from torch import nn\n"
        "class Loss(nn.Module):\n"
        "    def forward(self, prediction, epoch):\n"
        "        scale = prediction.size(0)\n"
        "        if epoch > 3:\n"
        "            return prediction.sum()\n"
        "        return (prediction > 0).sum()\n"
    )
    epoch, prediction = module.tree.nodes(cst.Comparison)
    assert module.value(epoch).kind is Kind.UNKNOWN
    assert module.value(prediction).kind is Kind.TENSOR


def test_an_attribute_named_like_a_loss_is_no_tensor_by_its_name() -> None:
    module = _model(
        "from torch import nn\n"
        "class Trainer:\n"
        "    def step(self):\n"
        "        if self.stft_loss:\n"
        "            return 1\n"
    )
    (branch,) = module.tree.nodes(cst.If)
    assert module.value(branch.test).kind is Kind.UNKNOWN


def test_an_autograd_function_is_no_module() -> None:
    module = _model(
        "import torch\n"
        "class Deform(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return x\n"
    )
    (definition,) = module.tree.nodes(cst.ClassDef)
    assert module.classes.info(definition).kind is Kind.OBJECT


def test_what_is_backpropagated_through_is_a_tensor_whatever_the_model_returns() -> None:
    module = _model(
        "def train(model, batches):\n"
        "    for x in batches:\n"
        '        loss = model(x.to("cuda"))\n'
        "        loss.backward()\n"
        "        print(loss)\n"
    )
    printed = module.names.reads("loss")[-1]
    assert module.value(printed).kind is Kind.TENSOR


def test_functions_that_all_call_each_other_are_not_gone_through_in_every_order() -> None:
    names = [f"visit_{number}" for number in range(7)]
    bodies = [
        f"def {name}(x):\n    return [{', '.join(f'{other}(x)' for other in names if other != name)}]\n"
        for name in names
    ]
    module = _model("import torch\n" + "".join(bodies) + "visit_0(torch.ones(2))\n")
    reads = module.names.reads("x")
    assert len(reads) == 42
    assert {module.value(read).kind for read in reads} == {Kind.TENSOR}


def test_where_of_three_arguments_gives_a_tensor_whatever_they_are() -> None:
    module = _model("import torch\ndef choose(mask, scores):\n    return torch.where(mask, scores, 0.0)\n")
    (read,) = [node for node in module.tree.nodes(cst.Call) if len(node.args) == 3]
    assert module.value(read).kind is Kind.TENSOR


def test_a_dict_has_its_own_value_under_each_key() -> None:
    module = _model(
        "import torch\n"
        "def step(x, short):\n"
        "    if short:\n"
        "        return {'loss': x.sum(), 'count': 1}\n"
        "    return {'loss': x.mean(), 'count': 2, 'rate': 0.1}\n"
        "out = step(torch.ones(2), True)\n"
        "loss, count, rate = out['loss'], out['count'], out['rate']\n"
        "print(loss, count, rate)\n"
    )
    kinds = [module.value(module.names.reads(name)[0]).kind for name in ("loss", "count", "rate")]
    assert kinds == [Kind.TENSOR, Kind.NUMBER, Kind.NUMBER]


def test_keywords_of_the_callers_choice_are_what_the_calls_pass() -> None:
    module = _model(
        "import torch\n"
        "def log(**values):\n"
        "    for name, value in values.items():\n"
        "        if isinstance(value, torch.Tensor):\n"
        "            show(value)\n"
        "        else:\n"
        "            keep(value)\n"
        "log(loss=torch.ones(2).cuda(), rate=0.1)\n"
    )
    shown, kept = (module.value(read) for read in module.names.reads("value")[1:])
    assert shown.kind is Kind.TENSOR and shown.device is Device.ACCELERATOR
    assert kept.kind is not Kind.TENSOR


def test_a_call_of_what_a_table_has_runs_one_of_several_functions() -> None:
    module = _model(
        "class Base:\n"
        "    def run(self):\n"
        "        return self.step()\n"
        "    def step(self):\n"
        "        raise NotImplementedError\n"
        "class One(Base):\n"
        "    def step(self):\n"
        "        return 1\n"
        "class Two(Base):\n"
        "    def step(self):\n"
        "        return 2\n"
        "def use(name):\n"
        "    made = {'one': One, 'two': Two}[name]()\n"
        "    return made.step(), made.run()\n"
    )
    (base, one, two) = (f for f in module.tree.nodes(cst.FunctionDef) if f.name.value == "step")
    calls = {module.source(call): call for call in module.tree.nodes(cst.Call)}
    assert module.callees(calls["made.step()"]) == (one, two)
    assert module.callees(calls["self.step()"]) == (one, two)
    assert module.callee(calls["made.step()"]) is None
    assert module.value(calls["made.run()"]).kind is Kind.NUMBER
    assert calls["made.step()"] in module.callers(one)
    assert not any(call is calls["made.step()"] for call in module.callers(base))


def test_a_method_has_the_callers_of_the_attribute_that_it_is_assigned_to() -> None:
    module = _model(
        "class Updater:\n"
        "    def __init__(self):\n"
        "        self.update = self.update_one\n"
        "        self.reset = self.reset_one\n"
        "    def update_one(self, lengths):\n"
        "        return 1\n"
        "    def reset(self):\n"
        "        raise NotImplementedError\n"
        "    def reset_one(self):\n"
        "        return 1\n"
        "def use():\n"
        "    updater = Updater()\n"
        "    return updater.update(2), updater.reset()\n"
    )
    methods = {f.name.value: f for f in module.tree.nodes(cst.FunctionDef)}
    callers = {name: [*map(module.source, module.callers(f))] for name, f in methods.items()}
    assert callers["update_one"] == ["updater.update(2)"]
    assert callers["reset_one"] == ["updater.reset()"] and not callers["reset"]


def test_a_helper_that_calls_itself_gives_back_a_structure_of_tensors() -> None:
    module = _model(
        "import torch\n"
        "def move(batch):\n"
        "    if isinstance(batch, torch.Tensor):\n"
        "        return batch.cuda()\n"
        "    if isinstance(batch, dict):\n"
        "        return {name: move(part) for name, part in batch.items()}\n"
        "    return type(batch)(move(part) for part in batch)\n"
        "for batch in torch.utils.data.DataLoader(data):\n"
        "    moved = move(batch)\n"
        "    print(moved)\n"
    )
    (read,) = module.names.reads("moved")
    assert module.value(read).kind is Kind.BATCH
    assert module.value(read).device is Device.ACCELERATOR


def test_a_cast_says_what_something_is_where_the_flow_says_something_else() -> None:
    module = _model(
        "from typing import cast\n"
        "import torch\n"
        "from torch import nn\n"
        "class Explained:\n"
        "    def __init__(self, method):\n"
        "        self.method = method\n"
        "def model_of(method: Explained):\n"
        "    model = cast(nn.Module, method)\n"
        "    mask = cast(torch.Tensor, torch.ones(3, device='cuda') > 0)\n"
        "    return model, mask\n"
    )
    (model_read,) = module.names.reads("model")
    (mask_read,) = module.names.reads("mask")
    assert module.value(model_read).kind is Kind.MODULE
    mask = module.value(mask_read)
    assert (mask.kind, mask.device, mask.dtype) == (Kind.TENSOR, Device.ACCELERATOR, "torch.bool")


@pytest.mark.parametrize(("entries", "kind"), [(64, Kind.MODULE), (65, Kind.UNKNOWN)])
def test_a_registry_of_many_models_may_give_any(entries: int, kind: Kind) -> None:
    registry = ", ".join(f"'{number}': nn.Linear(1, 1)" for number in range(entries))
    module = _model(f"from torch import nn\nmodels = {{{registry}}}\nmodel = models[name]\n")
    (chosen,) = module.tree.nodes(cst.Subscript)
    assert module.value(chosen).kind is kind
