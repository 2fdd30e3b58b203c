"""What a file trains when it is run, in which precision, and where that is set up."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from torchlint.fixes import insert_after_imports
from torchlint.rules.precision.tensorcores import profits_from_tensor_cores
from torchlint.semantics.module import Module
from torchlint.semantics.program import Program
from torchlint.source import apply

Modelled = Callable[[str], Module]

STEP = """
    loss = criterion(model(x.cuda()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SCRIPT = f"""
import torch
from torch import nn
from nets import Net

model = Net().cuda()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader():{STEP}"""

FUNCTION = f"""
import torch
from torch import nn
from nets import Net

def train(model, loader, optimizer, criterion):
  for x, y in loader:{STEP}
"""

# Program and what is trained: the target of the loop and the models, or None.
TRAINED = {
    "a script": (SCRIPT, "(x, y): model"),
    "on the CPU": (SCRIPT.replace(".cuda()", ""), None),
    "on another device": (SCRIPT.replace("import torch\n", "import torch\nimport torch_npu\n"), None),
    "a test": (SCRIPT.replace("import torch\n", "import torch\nimport pytest\n"), None),
    "nothing is stepped": (SCRIPT.replace("    optimizer.step()\n", ""), None),
    "stepped by hand": (
        SCRIPT.replace("optimizer.step()", "for p in model.parameters(): p.data -= p.grad"),
        "(x, y): model",
    ),
    "a function for others": (FUNCTION, None),
    "a function that the file calls": (
        FUNCTION + "net = Net().cuda()\ntrain(net, read(), torch.optim.SGD(net.parameters()), nn.MSELoss())",
        "(x, y): net",
    ),
    "a function that is handed on": (
        FUNCTION.replace(
            "def train(model, loader, optimizer, criterion):", "def work(rank):\n  model = Net()"
        )
        + "torch.multiprocessing.spawn(work, nprocs=2)",
        "(x, y): model",
    ),
    "a function that makes the model": (
        FUNCTION.replace("(model, loader, optimizer, criterion):", "(loader):\n  model = Net().cuda()"),
        "(x, y): model",
    ),
    "steps of an outer loop": (
        SCRIPT.replace("    optimizer.step()\n", "").replace(
            "for x, y", "while True:\n optimizer.step()\n for x, y"
        ),
        "(x, y): model",
    ),
    "a function whose caller makes the model": (
        FUNCTION
        + "def main():\n  net = Net().cuda()\n  train(net, read(), torch.optim.SGD(net.parameters()), f)",
        "(x, y): net",
    ),
    "a copy is not trained": (
        SCRIPT.replace(
            "criterion = ", "ema_model = Net()\nother = torch.optim.SGD(ema_model.parameters())\nc = "
        ),
        "(x, y): model",
    ),
    "groups of parameters": (
        SCRIPT.replace("Adam(model.parameters())", 'Adam([{"params": model.parameters(), "lr": 1}])'),
        "(x, y): model",
    ),
    "parameters that have a name": (
        SCRIPT.replace(
            "optimizer = torch.optim.Adam(model.parameters())",
            "params = [p for p in model.parameters()]\noptimizer = torch.optim.Adam(params)",
        ),
        "(x, y): model",
    ),
    "an optimizer of another file": (
        SCRIPT.replace("torch.optim.Adam(model.parameters())", "make_optimizer(model)"),
        "(x, y): model",
    ),
}


@pytest.mark.parametrize(("program", "expected"), TRAINED.values(), ids=TRAINED)
def test_what_is_trained(program: str, expected: str | None, semantic_model: Modelled) -> None:
    module = semantic_model(program)
    training = Program.of(module).training
    if training is None:
        assert expected is None
        return
    models = ", ".join(module.source(model.node) for model in training.models)
    target = module.source(training.loop).removeprefix("for ").partition(" in ")[0]
    assert f"({target}): {models}" == expected


PRECISIONS = {
    "single": ("", "", "single"),
    "autocast": ("", "with torch.autocast('cuda'): pass", "chosen"),
    "a scaler": ("scaler = torch.cuda.amp.GradScaler()", "", "chosen"),
    "a scaler of a library": ("from timm.utils import NativeScaler", "", "chosen"),
    "half": ("model.half()", "", "chosen"),
    "dtype of a model": ("model.to(torch.bfloat16)", "", "chosen"),
    "what is loaded": ("other = load(torch_dtype=kind)", "", "chosen"),
    "an option": ("parser.add_argument('--fp16')", "", "chosen"),
    "an option in camel case": ("parser.add_argument('--useAmp')", "", "chosen"),
    "an option for the dtype": ("dtype = getattr(torch, args.dtype)", "", "chosen"),
    "an option for the precision": ("parser.add_argument('--precision')", "", "chosen"),
    "a metric": ("print(f(precision=1, recall=2), args.precision)", "", "single"),
    "a help text": ("parser.add_argument('--x', help='no amp here')", "", "single"),
    "examples and clamps": ("samples, example = clamp(ramp), half_width()", "", "single"),
    "TF32": ("torch.backends.cuda.matmul.allow_tf32 = True", "", "tf32"),
    "TF32 by the function": ("torch.set_float32_matmul_precision('high')", "", "tf32"),
    "a framework": ("import deepspeed", "", "chosen"),
    "double precision": ("torch.set_default_dtype(torch.float64)", "", "exacting"),
    "a double model": ("model.double()", "", "exacting"),
    "a double sum": ("", "total += (x == y).double().sum()", "single"),
    "double arrays": ("import numpy as np\na = np.zeros(3, np.float64)", "", "single"),
    "a solver": ("", "torch.linalg.solve(x, y)", "exacting"),
    "second derivatives": ("", "torch.autograd.grad(loss, x, create_graph=True)", "exacting"),
    "none of these": ("loss.backward(create_graph=False)", "", "single"),
    "another optimizer": ("from torch.optim import LBFGS", "", "exacting"),
    "a library that integrates": ("from torchdiffeq import odeint", "", "exacting"),
}


@pytest.mark.parametrize(("setup", "step", "expected"), PRECISIONS.values(), ids=PRECISIONS)
def test_precision(setup: str, step: str, expected: str, semantic_model: Modelled) -> None:
    program = SCRIPT.replace("criterion = ", f"{setup}\ncriterion = ") + f"    {step}\n"
    assert Program.of(semantic_model(program)).precision.value == expected


def test_another_training_that_nothing_calls_says_nothing_of_precision(semantic_model: Modelled) -> None:
    other = dedent("""
        def train_mixed(x, scaler):
            with torch.autocast("cuda"):
                loss = model(x)
            scaler.scale(loss).backward()
    """)
    assert Program.of(semantic_model(SCRIPT + other)).precision.value == "single"
    assert Program.of(semantic_model(SCRIPT + other + "train_mixed(x, s)\n")).precision.value == "chosen"


PROFITS = {
    "a network that is not shown": ("Net()", "", True),
    "a small perceptron": ("nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1))", "", False),
    "a large perceptron": ("nn.Sequential(nn.Linear(20, 2048), nn.Linear(2048, 2048))", "", True),
    "one side of a layer is not shown": (
        "nn.Sequential(nn.Linear(n, 128), nn.Linear(128, classes))",
        "",
        False,
    ),
    "neither side is shown": ("nn.Linear(n, m)", "", True),
    "a small recurrent network": ("nn.LSTM(64, 128)", "", False),
    "convolutions": ("nn.Sequential(nn.Conv2d(3, 8, 3), nn.Linear(8, 2))", "", True),
    "an environment": ("Net()", "import gymnasium as gym", False),
    "an environment that is stepped": ("Net()", "obs = envs.step(model(x))", False),
    "rewards": ("Net()", "rewards, advantages = collect()", False),
    "graphs": ("Net()", "from dgl.nn import GraphConv", False),
    "a matrix of neighbours": ("Net()", "out = spread(adj)", False),
}


@pytest.mark.parametrize(("model", "more", "expected"), PROFITS.values(), ids=PROFITS)
def test_what_profits_from_tensor_cores(
    model: str, more: str, expected: bool, semantic_model: Modelled
) -> None:
    program = semantic_model(SCRIPT.replace("Net()", model).replace("criterion = ", f"{more}\ncriterion = "))
    profits: bool = profits_from_tensor_cores(program)
    assert profits is expected


MADE = {
    "a call": ("model = Net()", "Net()"),
    "moved at once": ("model = Net().cuda()", "Net()"),
    "moved later": ("model = Net()\nmodel = model.to('cuda')", "Net()"),
    "wrapped": ("model = nn.DataParallel(Net()).cuda()", "Net()"),
    "wrapped later": ("model = Net()\nmodel = DDP(model, device_ids=[0])", "Net()"),
    "one of two": ("model = A() if x else B()", "A() B()"),
    "by a function": ("def make():\n    return Net(3)\nmodel = make()", "Net(3)"),
    "in a pair": ("model, other = A(), B()", "A()"),
    "given": ("def f(model): pass", ""),
    "given by a caller": ("def f(one):\n    return one\nmodel = f(Net(5))", "Net(5)"),
}


@pytest.mark.parametrize(("code", "expected"), MADE.values(), ids=MADE)
def test_what_makes_a_model(code: str, expected: str, semantic_model: Modelled) -> None:
    module = semantic_model(SCRIPT.replace("model = Net().cuda()", f"{code}\nmodel.cuda()"))
    training = Program.of(module).training
    assert training is not None
    assert " ".join(module.source(call) for call in Program.of(module).makers(training.models[0])) == expected


PLACED = {
    "in the assignment": ("model = Net().to(device)", "Net().to(device)"),
    "in the assignment, with more behind": ("model = Net().cuda().train()", "Net().cuda()"),
    "as a statement": ("model = Net()\nmodel.to(device)", "model.to(device)"),
    "another model": ("model = Net()\nother = Net().to(device)", None),
    "another variable of the name": ("model = Net()\ndef f(model):\n    model.to(device)", None),
}


@pytest.mark.parametrize(("code", "expected"), PLACED.values(), ids=PLACED)
def test_where_a_model_is_put_on_the_device(
    code: str, expected: str | None, semantic_model: Modelled
) -> None:
    module = semantic_model(SCRIPT.replace("model = Net().cuda()", f"device = torch.device('cuda')\n{code}"))
    training = Program.of(module).training
    assert training is not None
    placed = Program.of(module).put_on_device(training.models[0])
    assert (module.source(placed) if placed is not None else None) == expected


RUN = {
    "without autograd": ("with torch.no_grad():\n    for x in loader():\n        model(x.cuda())", True),
    "with autograd": ("for x in loader():\n    model(x.cuda())", False),
    "once": ("with torch.no_grad():\n    model(read().cuda())", False),
    "in a function for others": (
        "@torch.no_grad()\ndef f(loader):\n    for x in loader:\n        model(x.cuda())",
        False,
    ),
    "beside a training": (
        "with torch.no_grad():\n    for x in loader():\n        model(x.cuda())\nloss.backward()",
        False,
    ),
}


@pytest.mark.parametrize(("code", "expected"), RUN.values(), ids=RUN)
def test_a_model_that_is_only_run(code: str, expected: bool, semantic_model: Modelled) -> None:
    head = "import torch\nfrom torchvision.models import resnet18\nmodel = resnet18().cuda().eval()\n"
    assert (Program.of(semantic_model(head + code + "\n")).inference is not None) is expected


HEADS = {
    "behind the imports": (
        "import os\nimport torch\n\nx = 1\n",
        "import os\nimport torch\n\ntorch.set_num_threads(1)\n\nx = 1\n",
    ),
    "assignments between": (
        "import os\nos.environ['A'] = '1'\nimport torch\n",
        "import os\nos.environ['A'] = '1'\nimport torch\n\ntorch.set_num_threads(1)\n",
    ),
    "imports that may fail": (
        "import torch\ntry:\n    import a\nexcept OSError:\n    pass\nx = 1\n",
        "import torch\ntry:\n    import a\nexcept OSError:\n    pass\n\ntorch.set_num_threads(1)\nx = 1\n",
    ),
    "an import further down": (
        "import torch\nfor i in []: pass\nimport os\n",
        "import torch\n\ntorch.set_num_threads(1)\nfor i in []: pass\nimport os\n",
    ),
    "what a script runs": (
        "import torch\nif __name__ == '__main__':\n    import a\n    a.main()\n",
        "import torch\n\ntorch.set_num_threads(1)\nif __name__ == '__main__':\n    import a\n    a.main()\n",
    ),
    "carriage returns": (
        "import torch\r\nx = 1\r\n",
        "import torch\r\n\r\ntorch.set_num_threads(1)\r\nx = 1\r\n",
    ),
    "an alias": ("import torch as t; x = 1\n", "import torch as t; x = 1\n\nt.set_num_threads(1)\n"),
    "nothing is imported": ("x = 1\n", None),
    "the name is taken": ("import os\ntorch = None\n", None),
}


@pytest.mark.parametrize(("program", "expected"), HEADS.values(), ids=HEADS)
def test_where_the_program_is_set_up(program: str, expected: str | None, semantic_model: Modelled) -> None:
    edits = insert_after_imports(semantic_model(program), "\n{}(1)", "torch.set_num_threads")
    if edits is None:
        assert expected is None
    else:
        assert apply(program, edits) == expected
