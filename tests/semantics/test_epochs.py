"""Which loaders are gone through again and again, and by which loop."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "loops": """
        from torch.utils.data import DataLoader as L
        from tqdm import trange


        def nested(data, model):
            loader = L(data)  #: L(data) => passes=epoch
            for epoch in range(9):
                for x in loader:
                    model(x)


        def called(data, model):
            loader = L(data)  #: L(data) => passes=while
            while model.improves():
                one_pass(model, loader)


        def one_pass(model, loader):
            for x in loader:
                model(x)


        def single(data, model):
            loader = L(data)  #: L(data) => passes=no
            one_pass(model, loader)


        def anew(data, model):
            for epoch in range(9):
                one_pass(model, L(data))  #: L(data) => passes=no


        def counted_before(data, model):
            loader = L(data)  #: L(data) => passes=_
            steps = trange(9)
            for _ in steps:
                one_pass(model, loader)


        def taken(first, second, model):
            loaders = [L(first), L(second)]  #: L(first) => passes=no
            for loader in loaders:
                one_pass(model, loader)
            for index in range(2):
                for x in loaders[index]:
                    model(x)


        class Run:
            def __init__(self, data):
                self.loader = L(data)  #: L(data) => passes=_

            def all(self):
                for _ in range(9):
                    self.one()

            def one(self):
                return [x for x in self.loader]


        def restarted(data, steps):
            loader = L(data)  #: L(data) => passes=step
            for step in range(steps):
                batches = iter(loader)
    """,
    "workers": """
        import argparse
        import os
        from dataclasses import dataclass

        from torch.utils.data import DataLoader as L

        parser = argparse.ArgumentParser()
        parser.add_argument("--num-workers", default=4)
        parser.add_argument("--processes", default=None)
        args = parser.parse_args()


        def make(data, count, some=2, **options):
            L(data)  #: L(data) => workers=0
            L(data, num_workers=3)  #: L(data, num_workers=3) => workers=3
            L(data, num_workers=os.cpu_count())  #: L(data, num_workers=os.cpu_count()) => workers=1
            L(data, num_workers=args.num_workers)  #: L(data, num_workers=args.num_workers) => workers=4?
            L(data, num_workers=args.processes)  #: L(data, num_workers=args.processes) => workers=no
            L(data, num_workers=count)  #: L(data, num_workers=count) => workers=no
            L(data, num_workers=some)  #: L(data, num_workers=some) => workers=2?
            L(data, **options)  #: L(data, **options) => workers=no


        @dataclass
        class Config:
            loaders: int = 2
            readers: int


        def configured(data, config: Config):
            L(data, num_workers=config.loaders)  #: L(data, num_workers=config.loaders) => workers=2?
            L(data, num_workers=config.readers)  #: L(data, num_workers=config.readers) => workers=no
    """,
}


def test_passes(expectation: Callable[[], None]) -> None:
    """One expectation of one program."""
    expectation()
