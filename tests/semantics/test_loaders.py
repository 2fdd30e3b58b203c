"""Where the batches of a loader go, and which loaders a part of a batch comes from."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "destinations": """
        import torch
        from torch.utils.data import DataLoader

        device = torch.device("cuda")


        def moved(dataset, model):
            loader = DataLoader(dataset)  #: DataLoader(dataset) => goes=accelerator
            for step, (x, y) in enumerate(loader):
                model(x.to(device), y)


        def through_a_function(dataset, model):
            train(DataLoader(dataset), model)  #: DataLoader(dataset) => goes=accelerator


        def train(loader, model):
            for batch in loader:
                model(batch["x"].cuda())


        def kept(dataset):
            loader = DataLoader(dataset)  #: DataLoader(dataset) => collected=yes
            return [x.to(device) for x in loader]


        def kept_each_epoch(dataset, epochs):
            loader = DataLoader(dataset)  #: DataLoader(dataset) => collected=no
            for epoch in epochs:
                yield [x.to(device) for x in loader]


        def of_texts(dataset, model, tokenizer):
            for batch in DataLoader(dataset):  #: DataLoader(dataset) => goes=host collected=no
                model(**tokenizer(batch).to(device))


        def on_host(dataset):
            total = 0
            for x, _ in DataLoader(dataset):  #: DataLoader(dataset) => goes=host
                total += x.sum()
            return total


        def peek(dataset):
            return next(iter(DataLoader(dataset)))  #: DataLoader(dataset) => goes=sample


        def returned(dataset):
            return DataLoader(dataset)  #: DataLoader(dataset) => goes=elsewhere


        def handed_over(dataset, engine):
            for batch in DataLoader(dataset):  #: DataLoader(dataset) => goes=elsewhere
                engine.step(batch)


        def joined(datasets):
            loaders = [cycle(DataLoader(each)) for each in datasets]  #: DataLoader(each) => goes=accelerator
            for parts in zip(*[next(loader) for loader in loaders]):
                train_on(torch.cat(parts).to(device))


        def stored(dataset, memory):
            loader = DataLoader(dataset)  #: DataLoader(dataset) => goes=host
            for x in loader:
                memory = torch.cat((memory, x))
            memory.to(device)


        class Replay:
            def fill(self, buffer):
                self.batches = cycle(DataLoader(buffer))  #: DataLoader(buffer) => goes=accelerator

            def train(self):
                while self.training:
                    self.x, self.y = next(self.batches)
                    self.x = self.x.to(device)
    """,
    "trails": """
        from torch.utils.data import DataLoader

        first = DataLoader([1])
        second = DataLoader([2])


        def loop(other, tqdm):
            for x, y in first:
                use(x)  #: x => batch_of=3
                x = x.float()
                use(x)  #: x => batch_of=?
                use(y[0].view(-1))  #: y[0].view(-1) => batch_of=3
            for step, ((a, _), b) in enumerate(zip(tqdm(first), second)):
                use(a, b, step)  #: a => batch_of=3; b => batch_of=4; step => batch_of=?
            for parts in zip(*[next(iter(first)), next(iter(second))]):
                use(parts[1])  #: parts[1] => batch_of=4
            for batch in other:
                use(batch)  #: batch => batch_of=?
            for loader in (first, second):
                for batch in loader:
                    use({k: v.t() for k, v in batch.items()})  #: v.t() => batch_of=3,4


        def given(batch):
            use(batch)  #: batch => batch_of=3,?


        given(next(iter(first)))
        given(unknown)


        class Trainer:
            def __init__(self):
                self.loader = DataLoader([3])

            def step(self):
                self.batches = iter(self.loader)
                images, labels = next(self.batches)
                use(images)  #: images => batch_of=34
    """,
}


def test_loaders(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
