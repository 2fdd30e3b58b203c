"""How often places run: decoding steps, training steps, evaluated batches, epochs, throttled, once."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "a training script": """
        import torch
        from torch import nn

        model = nn.Linear(8, 8).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        use(0)  #: use(0) => frequency=once
        for epoch in range(10):
            use(1)  #: use(1) => frequency=epoch
            for step, (x, y) in enumerate(train_loader):
                loss = model(x).sum()  #: model(x) => frequency=step
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                if step % 100 == 0:
                    use(2)  #: use(2) => frequency=rarely
            model.eval()
            with torch.no_grad():
                for x, y in val_loader:
                    use(3)  #: use(3) => frequency=batch
                    model(x)
            model.train()
            if epoch % 5 == 0:
                use(4)  #: use(4) => frequency=epoch
        use(5)  #: use(5) => frequency=once
    """,
    "a loop that only computes": """
        import torch

        def fit(samples: torch.Tensor):
            samples = samples.cuda()
            total = torch.zeros(3, device="cuda")
            for start in range(0, 100, 10):
                total += samples[start : start + 10].sum(0)  #: total => frequency=loop
            return total

        class Model(torch.nn.Module):
            def forward(self, x):
                for i in range(10):
                    x = torch.sin(x)  #: torch.sin(x) => frequency=step
                return x
    """,
    "batches that a model goes through in several passes": """
        import torch

        def difference(guess, target):
            return (guess - target).abs().mean()

        @torch.no_grad()
        def evaluate(model, dataloader, steps):
            total = 0.0
            for x, target in dataloader:
                x, target = x.cuda(), target.cuda()
                guesses = []
                for _ in range(steps):
                    x = model(x)
                    guesses.append(x)
                error = difference(torch.cat(guesses), target)
                total += error.item()  #: error.item() => frequency=batch
            return total
    """,
    "what is made at the first step only": """
        import torch

        class Model(torch.nn.Module):
            def forward(self, x):
                if self.mask is None:
                    self.mask = use(1)  #: use(1) => frequency=rarely
                return x + self.mask  #: x => frequency=step

        class Descent(torch.optim.Optimizer):
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state[p]
                        if len(state) == 0:
                            state["mean"] = use(2)  #: use(2) => frequency=rarely
                        p.sub_(state["mean"])  #: p.sub_(state["mean"]) => frequency=step
    """,
    "functions that are called from such places": """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader


        def report(x):  #: report => frequency=step
            return use(x)  #: use(x) => frequency=step


        def now_and_then(x):
            return use(x)  #: use(x) => frequency=rarely


        def at_the_end(x):
            return use(x)  #: use(x) => frequency=epoch


        def both(x):
            return use(x)  #: use(x) => frequency=step


        def for_others(x):  #: for_others => frequency=unknown
            return use(x)  #: use(x) => frequency=unknown


        def listed(x):
            for each in x:
                use(each)  #: use(each) => frequency=unknown


        def evaluate(model, loader):
            model.eval()
            with torch.no_grad():
                for x in loader:
                    score(model(x))
            use(1)  #: use(1) => frequency=epoch


        def score(x):
            return use(x)  #: use(x) => frequency=batch


        def train(dataset):
            model = nn.Linear(8, 8).cuda()
            optimizer = torch.optim.AdamW(model.parameters())
            loader = DataLoader(dataset)
            use(2)  #: use(2) => frequency=once
            for epoch in range(10):
                for step, x in enumerate(loader):
                    loss = model(x).sum()
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    report(loss)
                    both(loss)
                    if step % 50 == 0:
                        now_and_then(loss)
                both(loss)
                evaluate(model, loader)
                at_the_end(loss)
    """,
    "modules and data sets": """
        import torch
        from torch import nn
        from torch.utils.data import Dataset


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 8)  #: nn.Linear(8, 8) => frequency=once
                self.cell = nn.GRUCell(8, 8)

            def forward(self, x):  #: forward => frequency=step
                return self.part(self.layer(x))  #: self.layer(x) => frequency=step

            def part(self, x):
                h = x[0]
                for each in x:
                    h = self.cell(each, h)  #: self.cell(each, h) => frequency=step
                return h


        class Rows(Dataset):
            def __getitem__(self, index):
                return use(index)  #: use(index) => frequency=step
    """,
    "beside a loop over data": """
        import torch
        from torch import nn

        def score(model: nn.Module, loader):
            use(1)  #: use(1) => frequency=epoch
            for x in loader:
                model(x.cuda())

        def scale(x: torch.Tensor):
            return use(x)  #: use(x) => frequency=unknown
    """,
    "generation": """
        import torch
        from torch import nn


        class GPT(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 8)

            def forward(self, tokens):
                return self.head(tokens)

            @torch.no_grad()
            def generate(self, tokens, count):
                use(1)
                for _ in range(count):
                    window = tokens[:, -128:]
                    logits = self(window)
                    after = logits[:, -1].argmax(-1, keepdim=True)  #: logits[:, -1] => frequency=token
                    tokens = torch.cat((tokens, after), dim=1)
                    if self.ended(after):
                        break
                return tokens

            def ended(self, token):
                return use(token)  #: use(token) => frequency=token


        @torch.no_grad()
        def sample(model: nn.Module, x, steps):
            while steps > 0:
                x = x - model(x)  #: model(x) => frequency=token
                steps -= 1
            return x


        class Search(nn.Module):
            def __init__(self, model: GPT):
                super().__init__()
                self.model = model

            @torch.no_grad()
            def forward(self, tokens, count):
                first = use(tokens)  #: use(tokens) => frequency=rarely
                self.prepared(first)
                for _ in range(count):
                    logits = self.model(tokens)  #: self.model => frequency=token
                    after = logits[:, -1].argmax(-1, keepdim=True)
                    tokens = torch.cat((tokens, after), dim=1)
                return tokens

            def prepared(self, tokens):
                return use(tokens)  #: use(tokens) => frequency=rarely


        @torch.no_grad()
        def until_it_fits(model: nn.Module, rows, size):
            done = False
            while not done:
                try:
                    y = model(rows[:size])  #: model(rows[:size]) => frequency=step
                    done = True
                except RuntimeError:
                    size = size // 2
            return y


        @torch.no_grad()
        def apart(model: nn.Module, images):
            for image in images:
                y = model(image)  #: model(image) => frequency=step
                use(y)


        @torch.no_grad()
        def act(model: nn.Module, env):
            x, done = env.reset(), False
            while not done:
                x, done = env.step(model(x))  #: model(x) => frequency=step


        def trained(model: nn.Module, x, optimizer):
            for _ in range(100):
                x = model(x)  #: model(x) => frequency=step
                x.sum().backward()
                optimizer.step()
                optimizer.zero_grad()
    """,
}


def test_frequencies(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
