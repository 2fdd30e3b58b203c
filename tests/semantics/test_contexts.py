"""What a place is there for: each context by what shows it, and what looks like it and is none."""

from __future__ import annotations

from collections.abc import Callable

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
}


def test_context(expectation: Callable[[], None]) -> None:
    """A node is recognised for what it is there for."""
    expectation()
