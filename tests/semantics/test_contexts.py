"""What a place is there for: each context by what shows it, and what looks like it and is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from torchlint.notebook import Notebook
from torchlint.options import LintSettings
from torchlint.semantics.contexts import Context, context
from torchlint.semantics.model import build
from torchlint.syntax import SyntaxTree

PROGRAMS = {
    "unit tests": """
        import unittest
        import torch

        class Cases(unittest.TestCase):
            def test_it(self):
                use(1)  #: use(1) => context=test
    """,
    "branches for debugging": """
        import torch

        def step(model, x, debug=False, debug_percentile=None, verbose=True):
            y = model(x)
            if debug:
                use(1)  #: use(1) => context=debug
            else:
                use(2)  #: use(2) => context=none
            if debug_percentile is not None:
                use(3)  #: use(3) => context=debug
            if verbose:
                use(4)  #: use(4) => context=none
            if not debug:
                use(5)  #: use(5) => context=none
            return y  #: y => context=none
    """,
    "a debug switch of a configuration": """
        DEBUG = False

        def train(loader, model, args):
            for x in loader:
                loss = model(x)
                loss.backward()
                if args.debug:
                    use(1)  #: use(1) => context=debug hot=no
                    report(loss)
                if DEBUG and loss > 1:
                    use(2)  #: use(2) => context=debug
                if config.get("debug") or args.verbose:
                    use(3)  #: use(3) => context=debug
                if args.debug or args.last:
                    use(4)  #: use(4) => context=none
                if not args.debug:
                    loss.item()  #: loss.item() => context=none hot=x

        def report(loss):
            use(5)  #: use(5) => context=debug
    """,
    "a debug switch that is asked for by name": """
        import torch

        def train(loader, model, args):
            for x in loader:
                loss = model(x)
                loss.backward()
                if getattr(args, "debug", False):
                    use(1)  #: use(1) => context=debug hot=no
                if getattr(torch.compiler, "is_exporting", bool)():
                    use(2)  #: use(2) => context=debug
                if getattr(args, "verbose", True):
                    use(3)  #: use(3) => context=none
                if not getattr(args, "debug", False):
                    use(4)  #: use(4) => context=none
    """,
    "what compares with what torch.testing expects": """
        import torch

        def check_gradients(operator, cases):
            def check(result):
                torch.testing.assert_close(result, torch.ones_like(result))

            for case in cases:
                check(operator(case))
                use(1)  #: use(1) => context=test

        def train(loader, model, optimizer):
            for x in loader:
                loss = model(x)
                loss.backward()
                optimizer.step()
                torch.testing.assert_close(loss, loss)
                use(2)  #: use(2) => context=none
    """,
    "a function that is called for debugging, and elsewhere": """
        def train(loader, model, args):
            for x in loader:
                loss = model(x)
                loss.backward()
                if args.debug:
                    report(loss)
                report(loss)

        def report(loss):
            use(5)  #: use(5) => context=none
    """,
    "branches for the CPU": """
        import torch

        CPU = torch.device("cpu")

        class Trainer:
            def fit(self, loader, model, device):
                for x in loader:
                    model(x).backward()
                    if not torch.cuda.is_available():
                        use(1)  #: use(1) => context=host_only hot=no
                    if device == "cpu":
                        use(2)  #: use(2) => context=host_only
                    elif device.type == "mps":
                        use(3)  #: use(3) => context=none
                    else:
                        use(4)  #: use(4) => context=none
                    if self.device == CPU:
                        use(5)  #: use(5) => context=host_only
                    if self.device.type != "cuda":
                        use(6)  #: use(6) => context=host_only
                    if self.device != torch.device("cpu"):
                        use(7)  #: use(7) => context=none hot=x
                    if x.is_cuda:
                        use(8)  #: use(8) => context=none
                    if device.type in ("cpu", "mps"):
                        use(9)  #: use(9) => context=none
                    if self.device == Kinds.CUDA:
                        use(10)  #: use(10) => context=none
                    else:
                        use(11)  #: use(11) => context=host_only
                    if self.device == Kinds.CPU:
                        use(12)  #: use(12) => context=host_only
    """,
    "a class of the CPU": """
        import torch

        class Buffer:
            def __init__(self):
                self.device = torch.device("cpu")

            def push(self, x):
                use(1)  #: use(1) => context=host_only

        class Other:
            def __init__(self, device="cpu"):
                self.device = device

            def push(self, x):
                use(2)  #: use(2) => context=none
    """,
    "old releases": """
        import torch
        from packaging import version

        NEW = hasattr(torch, "compile")

        if version.parse(torch.__version__) < version.parse("1.8"):
            def rfft(x):
                use(1)  #: use(1) => context=old_release
        else:
            def rfft(x):
                use(2)  #: use(2) => context=none

        try:
            from torch.nn import Flatten
        except ImportError:
            class Flatten:
                def forward(self, x):
                    use(3)  #: use(3) => context=old_release

        def f(x):
            if NEW:
                use(4)  #: use(4) => context=none
                return x
            use(5)  #: use(5) => context=old_release

        def g(x):
            try:
                import apex
            except ImportError:
                use(6)  #: use(6) => context=none
    """,
    "test cases of a project, and a test of an example": """
        import torch
        from project.testing import ProjectTestCase

        class ModelTestCase(ProjectTestCase):
            def ensure_model_can_be_saved(self, path, tolerance):
                model = self.load(path)
                model.eval()
                use(1)  #: use(1) => context=test
                self.compare(model(self.batch), tolerance)

        def test():
            data, labels = shapes()
            f = Network()
            (f(data) - labels).pow(2).sum().backward()
            use(2)  #: use(2) => context=test
            assert (f(data) - f(rotated(data))).abs().max() < 1e-5

        def _test():
            for make in (Small, Large):
                net = make()
                y = net(torch.randn(2, 3, 224, 224))
                y.sum().backward()
                use(3)  #: use(3) => context=test
                assert y.shape == (2, 1000)
    """,
    "functions that test, and functions that evaluate": """
        import torch

        def test_shapes():
            y = Net()(torch.rand(2, 3, 8, 8))
            assert y.shape == (2, 4)
            use(1)  #: use(1) => context=test

        def test_epoch(model, loader):
            for x in loader:
                use(2)  #: use(2) => context=none hot=x
                model(x)

        def test():
            for x in test_loader:
                use(3)  #: use(3) => context=none hot=x
                assert model(x).isfinite().all()

        class Detector:
            def check_model(self):
                found = self.model([torch.rand(3, 300, 400), torch.rand(3, 500, 400)])
                use(4)  #: use(4) => context=test
                assert len(found) == 2

            def sample(self):
                pictures = self.model(torch.randn(16, 100))
                use(5)  #: use(5) => context=none
                assert len(pictures) == 16
                return pictures

            def advance(self):
                for x in self.loader:
                    loss = self.model(x, torch.ones(3)).sum()
                    use(6)  #: use(6) => context=none
                    assert loss.isfinite()
                    loss.backward()
    """,
    "a file that is tried": """
        import torch
        from torch import nn

        class Net(nn.Module):
            def forward(self, x):
                use(1)  #: use(1) => context=none hot=forward
                return x

        if __name__ == "__main__":
            model = Net().cuda()
            for _ in range(10):
                y = model(torch.rand(1, 3, 224, 224).cuda())
                use(y.shape)  #: use(y.shape) => context=test hot=no
    """,
    "a file that is tried with sizes in variables": """
        import torch
        from torch import nn

        class Net(nn.Module):
            def forward(self, x):
                return x

        if __name__ == "__main__":
            size = 3
            x = torch.randn(2, size)
            for width in (8, 16):
                y = Net()(x.cuda())
                use(y.shape)  #: use(y.shape) => context=test hot=no
    """,
    "a program that makes pictures": """
        import torch
        from torch import nn

        class Net(nn.Module):
            def forward(self, x):
                return x

        def main():
            model = Net().cuda()
            model.load_state_dict(torch.load("net.pt"))
            for i in range(1000):
                y = model(torch.randn(16, 100).cuda())
                y.item()  #: y.item() => context=none hot=i

        if __name__ == "__main__":
            main()
    """,
    "benchmarks": """
        import time, timeit
        import torch
        import torch.utils.benchmark as benchmark

        def measure(model, x):
            start = time.perf_counter()
            for i in range(100):
                if i < 10:
                    continue
                y = model(x)
                y.item()  #: y.item() => context=benchmark hot=no
            torch.cuda.synchronize()
            return time.perf_counter() - start

        def rounds(model, x):
            times = []
            for _ in range(100):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                model(x)
                end.record()
                torch.cuda.synchronize()
                times.append(begin.elapsed_time(end))  #: times => context=benchmark

        def compare(model, x):
            timer = benchmark.Timer("f(x)", globals={"f": model})
            print(helper(timer))  #: helper(timer) => context=benchmark

        def helper(timer):
            return timer.timeit(100)  #: timer => context=benchmark

        def benchmark_model(model, xs):
            start = time.time()
            for x in xs:
                model(x)  #: model(x) => context=benchmark
            return time.time() - start
    """,
    "loops that are timed beside": """
        import time
        import torch

        def train(model, loader, optimizer):
            start = time.time()
            for x in loader:
                loss = model(x)
                loss.backward()
                loss.item()  #: loss.item() => context=none hot=x
            print(time.time() - start)

        def generate(model, x):
            start = time.time()
            for _ in range(100):
                x = torch.cat([x, model(x)])
                x.item()  #: x.item() => context=none
            print(time.time() - start)

        def denoise(model, x):
            start = time.time()
            for t in range(100):
                y = model(x, t)
                y.item()  #: y.item() => context=none
            print(time.time() - start)

        def learn(model, buffer, optimizer):
            start = time.time()
            for _ in range(100):
                loss = model(buffer.sample())
                loss.backward()
                loss.item()  #: loss.item() => context=none hot=_
            print(time.time() - start)
    """,
    "profiles": """
        import torch

        def look(model, x):
            with torch.profiler.profile() as prof:
                for _ in range(10):
                    model(x)
                    use(1)  #: use(1) => context=benchmark
            print(prof.key_averages())

        def train(model, loader):
            with torch.profiler.profile() as prof:
                for x in loader:
                    model(x).backward()
                    use(2)  #: use(2) => context=none hot=x
    """,
    "conversions": """
        import torch

        def convert(path, target):
            state = torch.load(path)
            new = {}
            for key, value in state.items():
                new[rename(key)] = value.cuda()  #: value.cuda() => context=conversion
            torch.save(new, target)

        def rename(key):
            return key.replace("a", "b")  #: key.replace("a", "b") => context=conversion

        def export(model):
            x = torch.rand(1, 3, 224, 224)
            torch.onnx.export(model, x, "model.onnx")
            use(1)  #: use(1) => context=conversion
    """,
    "what loads and saves and is no conversion": """
        import torch

        def main(loader, model, optimizer):
            model.load_state_dict(torch.load("a.pt"))
            train(loader, model, optimizer)
            torch.save(model.state_dict(), "b.pt")
            use(1)  #: use(1) => context=none

        def train(loader, model, optimizer):
            for x in loader:
                model(x).backward()
                use(2)  #: use(2) => context=none hot=x

        def features(model, paths):
            model.load_state_dict(torch.load("a.pt"))
            found = []
            for path in paths:
                found.append(model(read(path)).cpu())
                use(3)  #: use(3) => context=none
            torch.save(found, "found.pt")
    """,
    "plots": """
        import matplotlib.pyplot as plt
        import torch

        def show(model, x):
            fig, axes = plt.subplots(2, 2)
            y = model(x)
            for i in range(4):
                axes[i].imshow(y[i].cpu())  #: y[i].cpu() => context=plotting hot=no

        def train(model, loader, optimizer):
            losses = []
            for i, x in enumerate(loader):
                loss = model(x)
                loss.backward()
                losses.append(loss.item())  #: loss.item() => context=none hot=i
                if i % 100 == 0:
                    plt.title(f"loss {loss.item()}")  #: loss.item() => context=plotting
                    plt.show()
            plt.plot(torch.stack(losses).cpu())  #: torch.stack(losses).cpu() => context=plotting
            use(1)  #: use(1) => context=none

        def evaluate(model, loader):
            for x in loader:
                y = model(x)
                y.item()  #: y.item() => context=none hot=x
            plt.matshow(confusion)

        def validate(model, loader):
            for x in loader:
                y = model(x)
                log(plot_spectrogram(y[0].cpu().numpy()))  #: y[0].cpu().numpy() => context=plotting hot=no

        def losses(model, loader):
            found = []
            for x in loader:
                loss = model(x)
                loss.backward()
                found.append(loss.item())  #: loss.item() => context=none hot=x
            return found

        def curve(model, loader):
            plt.plot(losses(model, loader))  #: losses(model, loader) => context=plotting

        def walk(model):
            for i in range(9):
                image = model.sample(i)
                plt.subplot(3, 3, i)
                plt.imshow(image.cpu())
                image.mean().item()  #: image.mean().item() => context=plotting hot=no
    """,
    "a tutorial": """
        \"\"\"
        Training a classifier
        =====================
        \"\"\"
        import torch

        ######################################################################
        # First we make a tensor.

        x = torch.rand(2, 3)

        ######################################################################
        # Then we look at it.

        print(x)

        ######################################################################
        # And now we train.

        for x in loader:
            model(x).backward()
            use(1)  #: use(1) => context=teaching hot=x
    """,
}


def test_context(expectation: Callable[[], None]) -> None:
    """A node is recognised for what it is there for."""
    expectation()


CELLS = {
    "toy tensors": ("x = torch.tensor([[1, 2], [3, 4]])\nmark(x)", "teaching"),
    "shapes": ("y = net(x)\nprint(y.shape)\nmark(y)", "teaching"),
    "a class that is tried": (
        "class Net(nn.Module):\n    def forward(self, x):\n        return mark(x)\nNet()(torch.rand(2, 3))",
        "teaching",
    ),
    "a plot": ("fig, ax = plt.subplots()\nax.plot(mark(losses))", "plotting"),
    "training": ("print(x.shape)\nfor x in loader:\n    net(x).backward()\n    mark(x)", None),
    "a function that trains": (
        "def fit(loader):\n    for x in loader:\n        net(x).backward()\n        mark(x)\nprint(x.shape)",
        None,
    ),
    "a model": ("net = nn.Linear(1000, 1000)\nmark(net)", None),
}


@pytest.mark.parametrize("title", CELLS)
def test_cells(title: str) -> None:
    """A cell of a notebook is told by all that is in it, and by nothing in other cells."""
    text, expected = CELLS[title]
    head = "import torch\nfrom torch import nn\nimport matplotlib.pyplot as plt\nx = torch.rand(2, 3)"
    notebook = Notebook.from_cells([(1, head), (2, text)], Path("lesson.ipynb"))
    module = build(SyntaxTree(notebook.text), LintSettings(), notebook.locate)
    marked = next(
        call
        for call in module.tree.nodes(cst.Call)
        if isinstance(call.func, cst.Name) and call.func.value == "mark"
    )
    found = context(module, marked)
    assert (found.value if found is not None else None) == expected


@pytest.mark.parametrize(("name", "expected"), [("test_fit.py", Context.TEST), ("fit.py", None)])
def test_functions_of_a_file_that_test_runners_look_into_are_tests(
    name: str, expected: Context | None
) -> None:
    program = (
        "import fit\n\ndef test_fit():\n    for size in range(9):\n        print(fit.error(size))\n\n"
        "def test_loss():\n    for x in loader:\n        assert fit.model(x) < 9\n"
    )
    module = build(SyntaxTree(program), LintSettings(), path=Path(name))
    for function in module.tree.nodes(cst.FunctionDef):
        assert context(module, function.body) is expected
