"""Memory that is given back at every step, and the reasons that programs have for it."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "places": """
        import gc
        import torch


        def tidy():
            torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=x


        def train(model, loader, optimizer):
            torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=no
            for step, x in enumerate(loader):
                model(x.cuda()).sum().backward()
                optimizer.step()
                torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=step
                if step % 10 == 0:
                    gc.collect()  #: gc.collect() => clears=no
                if torch.cuda.is_available():
                    gc.collect()  #: gc.collect() => clears=step
            gc.collect()  #: gc.collect() => clears=no


        def sample(model, loader):
            for x in loader:
                model(x.cuda())
                tidy()
    """,
    "options": """
        import gc
        import torch


        def tidy(careful):
            if careful:
                torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=x


        def train(model, loader, args, run_gc):
            for x in loader:
                model(x.cuda()).sum().backward()
                if args.save_memory:
                    torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=no
                elif run_gc:
                    gc.collect()  #: gc.collect() => clears=no


        def sample(model, loader):
            for x in loader:
                model(x.cuda())
                tidy(True)


        def sample_sparingly(model, loader, low_vram):
            for x in loader:
                model(x.cuda())
                if low_vram:
                    free()


        def free():
            torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=no
    """,
    "reasons": """
        import gc
        import torch
        from models import build


        def compare(names, x):
            for name in names:
                model = build(name).cuda()
                model(x)
                torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=no


        def score(name, x):
            net = torch.hub.load("models", name).cuda()
            found = net(x).mean()
            del net
            gc.collect()  #: gc.collect() => clears=no
            torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=no
            return found


        def score_all(names, x):
            return [score(name, x) for name in names]


        def keeps_the_model(model, loader):
            for x in loader:
                y = model(x.cuda())
                del y
                gc.collect()  #: gc.collect() => clears=x
            del model
            gc.collect()  #: gc.collect() => clears=no


        def profile_memory(model, loader):
            for x in loader:
                gc.collect()  #: gc.collect() => clears=no
                model(x.cuda())


        def shrink(model, x):
            for size in (64, 32, 16):
                gc.collect()  #: gc.collect() => clears=no
                try:
                    model(x[:size].cuda())
                except RuntimeError as error:
                    if "out of memory" not in str(error):
                        raise
                else:
                    break


        def skip_large_ones(model, loader):
            for x in loader:
                try:
                    model(x.cuda())
                except RuntimeError as error:
                    if "out of memory" not in str(error):
                        raise
                    gc.collect()  #: gc.collect() => clears=no
                torch.cuda.empty_cache()  #: torch.cuda.empty_cache() => clears=x
    """,
}


def test_clearances(expectation: Callable[[], None]) -> None:
    expectation()
