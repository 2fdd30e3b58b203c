"""What an iteration of a loop does, to what, and by which calls."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.autograd.accumulation_unscaled.scaling import unscaled
from torchlint.rules.autograd.clearing import clearings_around, uncleared
from torchlint.semantics import model
from torchlint.semantics.evalmode import left_evaluating
from torchlint.semantics.iterations import Act, Event, Iterations, bound_in
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name
from torchlint.syntax import SyntaxTree

HEAD = """
import torch
from torch import nn
from elsewhere import finish, log, make

model, other = nn.Linear(4, 2), nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
nets, language_model = make(), make()
second = torch.optim.SGD(other.parameters(), lr=0.1)
"""


def modelled(program: str) -> Module:
    text = HEAD + dedent(program)
    return model.build(SyntaxTree(text), LintSettings())


def first_loop(module: Module) -> cst.For | cst.While:
    return module.tree.nodes(cst.For, cst.While)[0]  # type: ignore[return-value]


def told(module: Module, event: Event) -> str:
    about = f" {module.source(event.subject.node)}" if event.subject is not None else ""
    way = "".join(f" by {last_name(call.func)}" for call in event.path)
    inner = f" in {len(event.loops)}" if event.loops else ""
    return f"{event.act.value}{about}{way}{inner}"


EVENTS = {
    "in source order": (
        """
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            loss.backward()
            optimizer.step()
        """,
        ["clear optimizer", "backward loss", "step optimizer"],
    ),
    "with a scaler": (
        """
        scaler = torch.amp.GradScaler()
        for x in loader:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
        """,
        ["backward scaler.scale(loss)", "step optimizer"],
    ),
    "in functions": (
        """
        def update(loss, method):
            loss.backward()
            method.step()
        def run(x):
            update(model(x).mean(), optimizer)
        for x in loader:
            run(x)
        """,
        ["backward loss by run by update", "step method by run by update"],
    ),
    "in a closure": (
        """
        def closure():
            optimizer.zero_grad()
            loss.backward()
        while True:
            optimizer.step(closure)
        """,
        ["step optimizer", "clear optimizer by step", "backward loss by step"],
    ),
    "in inner loops": (
        """
        for batch in loader:
            for x in batch:
                model(x).mean().backward()
            optimizer.step()
        """,
        ["backward model(x).mean() in 1", "step optimizer"],
    ),
    "a loop over optimizers is none": (
        """
        for x in loader:
            model(x).mean().backward()
            for method in [optimizer, second]:
                method.step()
        """,
        ["backward model(x).mean()", "step method"],
    ),
    "modes": (
        """
        def validate(net):
            net.eval()
        for x in loader:
            model.train()
            validate(model)
            model.train(False)
            model.training = True
        """,
        ["train model", "eval net by validate", "eval model", "train model"],
    ),
    "clearing by hand": (
        """
        for x in loader:
            for p in model.parameters():
                p.grad = None
                p.grad.zero_()
                p.grad.data.mul_(0)
                del p.grad
                setattr(p, "grad", None)
                p.grad[...] = 0
                torch._foreach_zero_([p.grad])
                p.grad.clamp_(-1, 1)
                print(p.grad)
            clear_gradients(model)
        """,
        ["clear"] * 7,
    ),
    "clearing by other optimizers": (
        """
        for x in loader:
            sharpness.first_step(zero_grad=True)
        """,
        ["clear"],
    ),
    "a parser is no model": (
        """
        import pandas
        for x in loader:
            pandas.eval("1")
            torch.autograd.grad(loss, x)
        """,
        [],
    ),
    "a function that calls itself": (
        """
        def run(n):
            optimizer.step()
            run(n - 1)
        for x in loader:
            run(x)
        """,
        ["step optimizer by run"],
    ),
}


@pytest.mark.parametrize(("program", "expected"), EVENTS.values(), ids=EVENTS)
def test_events(program: str, expected: list[str]) -> None:
    module = modelled(program)
    iteration = Iterations.of(module).iteration(first_loop(module))
    assert iteration.complete
    seen = [event for event in iteration.events if event.act is not Act.FORWARD]
    assert [told(module, event) for event in seen] == expected


RUNNING = {
    "around it": ("for x in loader:\n    optimizer.step()", 1),
    "around a call of its function": ("def f():\n    optimizer.step()\nfor x in loader:\n    f()", 1),
    "around two of them": (
        "def f():\n    optimizer.step()\nfor x in a:\n    f()\nfor x in b:\n    f()",
        2,
    ),
    "the innermost": ("for e in range(3):\n    for x in loader:\n        optimizer.step()", 1),
    "not one over optimizers": ("for method in [optimizer, second]:\n    method.step()", 0),
    "nobody calls it": ("def f():\n    optimizer.step()", 0),
    "not at all": ("optimizer.step()", 0),
}


@pytest.mark.parametrize(("program", "expected"), RUNNING.values(), ids=RUNNING)
def test_the_loops_that_run_a_step(program: str, expected: int) -> None:
    module = modelled(program)
    step = next(call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "step")
    assert len(Iterations.of(module).running(step)) == expected


SAME = {
    "an argument": ("def f(m):\n    m.eval()\nfor x in loader:\n    model.train()\n    f(model)", True),
    "another argument": ("def f(m):\n    m.eval()\nfor x in loader:\n    model.train()\n    f(other)", False),
    "by keyword": (
        "def f(a, m):\n    m.eval()\nfor x in loader:\n    model.train()\n    f(m=model, a=1)",
        True,
    ),
    "wrapped": ("for x in loader:\n    model.train()\n    model.module.eval()", True),
    "an alias": ("def f():\n    m = model\n    m.eval()\nfor x in loader:\n    model.train()\n    f()", True),
    "an attribute": (
        """
        class T:
            def check(self):
                self.net.eval()
            def run(self):
                for x in loader:
                    self.net.train()
                    self.check()
        """,
        True,
    ),
    "an attribute of another object": (
        """
        class T:
            def check(self):
                self.net.eval()
            def run(self, ours):
                for x in loader:
                    self.net.train()
                    T(ours).check()
        """,
        False,
    ),
    "the model itself": (
        """
        class Net(nn.Module):
            def sample(self):
                self.eval()
        def run(net: Net):
            for x in loader:
                net.train()
                net.sample()
        """,
        True,
    ),
    "by key": ("for x in loader:\n    nets['a'].train()\n    nets['a'].eval()", True),
    "by another key": ("for x in loader:\n    nets['a'].train()\n    nets['b'].eval()", False),
    "by a key unknown": ("for x in loader:\n    nets[x].train()\n    nets[x].eval()", False),
}


@pytest.mark.parametrize(("program", "expected"), SAME.values(), ids=SAME)
def test_what_is_the_same_thing(program: str, expected: bool) -> None:
    module = modelled(program)
    iteration = Iterations.of(module).iteration(first_loop(module))
    one, other = (iteration.of(act)[0].subject for act in (Act.TRAIN, Act.EVAL))
    assert one is not None
    assert other is not None
    assert one.is_certainly(other) is expected


STEP = "\n    optimizer.step()"
UNCLEARED = {
    "never": ("for x in loader:\n    model(x).sum().backward()" + STEP, True),
    "in it": ("for x in loader:\n    optimizer.zero_grad()\n    model(x).sum().backward()" + STEP, False),
    "before it": ("optimizer.zero_grad()\nfor x in loader:\n    model(x).sum().backward()" + STEP, True),
    "another one": ("for x in loader:\n    second.zero_grad()\n    model(x).sum().backward()" + STEP, True),
    "by a function unknown": (
        "for x in loader:\n    model(x).sum().backward()\n    finish(optimizer)" + STEP,
        False,
    ),
    "told of the optimizer": (
        "for x in loader:\n    model(x).sum().backward()\n    log(optimizer)" + STEP,
        True,
    ),
    "an object that holds it": (
        "keeper = make(optimizer)\nfor x in loader:\n    model(x).sum().backward()\n    keeper.begin()"
        + STEP,
        False,
    ),
    "an object that holds data": (
        "keeper = make(3)\nfor x in loader:\n    model(x).sum().backward()\n    keeper.begin()" + STEP,
        True,
    ),
    "by a hook": (
        "p.register_post_accumulate_grad_hook(f)\nfor x in loader:\n    model(x).sum().backward()" + STEP,
        False,
    ),
    "once": ("for x in loader:\n    model(x).sum().backward()" + STEP + "\n    break", False),
    "without gradients": ("for x in loader:\n    model(x).sum()" + STEP, False),
    "made anew": (
        "for x in loader:\n    optimizer = torch.optim.SGD(model.parameters())\n    model(x).sum().backward()"
        + STEP,
        False,
    ),
}


@pytest.mark.parametrize(("program", "expected"), UNCLEARED.values(), ids=UNCLEARED)
def test_steps_without_clearing(program: str, expected: bool) -> None:
    module = modelled(program)
    step = next(call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "step")
    assert (uncleared(module, step) is not None) is expected


def test_where_gradients_are_cleared_outside() -> None:
    module = modelled("optimizer.zero_grad()\nsecond.zero_grad()\nfor x in loader:\n    x.backward()" + STEP)
    step = next(call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "step")
    found = uncleared(module, step)
    assert found is not None
    assert [module.source(call) for call in clearings_around(module, found)] == ["optimizer.zero_grad()"]


ENDS = {
    "break": ("for x in y:\n    f()\n    break", True),
    "return": ("def g():\n    for x in y:\n        if x:\n            f()\n            return x", True),
    "raise": ("for x in y:\n    f()\n    raise ValueError", True),
    "continue": ("for x in y:\n    f()\n    continue", False),
    "an inner loop is left": ("for z in y:\n    for x in z:\n        f()\n        break", False),
    "a function of the body is left": ("for x in y:\n    def g():\n        f()\n        return 1", False),
    "in one branch": ("for x in y:\n    f()\n    if x:\n        break", False),
}


@pytest.mark.parametrize(("program", "expected"), ENDS.values(), ids=ENDS)
def test_what_ends_a_loop(program: str, expected: bool) -> None:
    module = modelled(program)
    call = next(call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "f")
    assert module.flow.ends_loop(call, first_loop(module)) is expected


def test_a_variable_bound_anew() -> None:
    module = modelled("for x in loader:\n    net = make()\n    net.train()\n    model.eval()")
    loop = first_loop(module)
    train, evaluation = Iterations.of(module).iteration(loop).events
    assert train.subject is not None
    assert evaluation.subject is not None
    assert bound_in(module, loop, train.subject.place)
    assert not bound_in(module, loop, evaluation.subject.place)


TRAIN = "\n    optimizer.zero_grad()\n    net(x).sum().backward()\n    optimizer.step()"
NET = "net = nn.Sequential(nn.Linear(4, 4), nn.Dropout())\noptimizer = torch.optim.SGD(net.parameters())\n"
LEFT = {
    "behind the training": (NET + "for x in loader:" + TRAIN + "\n    net.eval()", True),
    "in front of it": (NET + "for x in loader:\n    net.eval()" + TRAIN, False),
    "in front of it, in a function": (
        NET + "def check(net):\n    net.eval()\nfor x in loader:\n    check(net)" + TRAIN,
        True,
    ),
    "put back": (NET + "for x in loader:" + TRAIN + "\n    net.eval()\n    net.train()", False),
    "another put back": (NET + "for x in loader:" + TRAIN + "\n    net.eval()\n    model.train()", True),
    "an unknown one put back": (
        NET + "for x in loader:" + TRAIN + "\n    net.eval()\n    that.train()",
        False,
    ),
    "before the loop already": (NET + "net.eval()\nfor x in loader:" + TRAIN + "\n    net.eval()", False),
    "ended before the loop": (
        NET + "net.eval()\nnet.train()\nfor x in loader:" + TRAIN + "\n    net.eval()",
        True,
    ),
    "another model": (NET + "for x in loader:" + TRAIN + "\n    model.eval()", False),
    "never trained": (NET + "for x in loader:\n    net(x)\n    net.eval()", False),
    "behind it all": (NET + "for x in loader:" + TRAIN + "\nnet.eval()", False),
    "by a function unknown": (
        NET + "for x in loader:\n    prepare_model(net)" + TRAIN + "\n    net.eval()",
        False,
    ),
    "by a function of its name": (NET + "for x in loader:\n    log(net)" + TRAIN + "\n    net.eval()", True),
    "no layer asks for the mode": (
        "net = nn.Linear(4, 2)\noptimizer = torch.optim.SGD(net.parameters())\nfor x in loader:"
        + TRAIN
        + "\n    net.eval()",
        False,
    ),
    "a model of another file": (
        "net = make().cuda()\noptimizer = torch.optim.SGD(net.parameters())\nfor x in loader:"
        + TRAIN
        + "\n    net.eval()",
        True,
    ),
}


@pytest.mark.parametrize(("program", "expected"), LEFT.values(), ids=LEFT)
def test_models_left_in_evaluation_mode(program: str, expected: bool) -> None:
    module = modelled(program)
    calls = [call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "eval"]
    found = [left_evaluating(module, call) for call in calls]
    assert any(left is not None for left in found) is expected


ACCUMULATED = {
    "an average": ("loss = nn.functional.mse_loss(model(x), y)", True),
    "an average of a module": ("loss = nn.MSELoss()(model(x), y)", True),
    "of a model of another file": ("loss = language_model(x).loss", True),
    "a mean": ("loss = (model(x) - y).mean()", True),
    "two of them": ("loss = model(x).mean() + 0.5 * model(y).mean()", True),
    "one that is weighed": ("loss = alpha * model(x).mean()", True),
    "changed in place": ("loss = model(x).mean()\n    loss += model(y).mean()", True),
    "divided": ("loss = model(x).mean() / n", False),
    "divided in place": ("loss = model(x).mean()\n    loss /= n", False),
    "divided by a method": ("loss = model(x).mean().div(n)", False),
    "divided by its number": ("loss = model(x).mean() * 0.25", True),
    "multiplied by who knows what": ("loss = model(x).mean() * scale", False),
    "a sum": ("loss = model(x).sum()", False),
    "a loss summed up": ("loss = nn.functional.mse_loss(model(x), y, reduction='sum')", False),
    "a loss reduced as of old": ("loss = nn.MSELoss(size_average=False)(model(x), y)", False),
    "of another file": ("loss = finish(model(x), y)", False),
    "a learning rate divided": ("rate = lr / n\n    loss = model(x).mean()", False),
    "a number of steps divided": ("steps = len(loader) / n\n    loss = model(x).mean()", True),
    "gradients scaled": ("loss = model(x).mean()\n    p.grad.div_(n)", False),
}


@pytest.mark.parametrize(("program", "expected"), ACCUMULATED.values(), ids=ACCUMULATED)
def test_accumulated_gradients(program: str, expected: bool) -> None:
    module = modelled(f"""
for i, (x, y) in enumerate(loader):
    {program}
    loss.backward()
    if (i + 1) % n == 0:
        optimizer.step()
        optimizer.zero_grad()
""")
    call = next(call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "backward")
    assert (unscaled(module, call) is not None) is expected


NUMBERS = {"4": True, "1": False, "n_critic": False, "args.policy_delay": False, "args.accumulate": True}


@pytest.mark.parametrize(("number", "expected"), NUMBERS.items(), ids=NUMBERS)
def test_the_number_of_batches(number: str, expected: bool) -> None:
    module = modelled(f"""
for i, x in enumerate(loader):
    model(x).mean().backward()
    if i % {number} == 0:
        optimizer.step()
        optimizer.zero_grad()
""")
    call = next(call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "backward")
    assert (unscaled(module, call) is not None) is expected
