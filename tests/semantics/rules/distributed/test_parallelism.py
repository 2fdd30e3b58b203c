"""What wraps the models of a program, where they are used then, and whether several processes run it."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from torchlint.rules.distributed.parallelism import Parallelism, Wrapping
from torchlint.semantics.module import Module

PROGRAMS = {
    "names": """
        import apex
        import torch
        import torch.nn as nn
        from functools import partial
        from apex.parallel import DistributedDataParallel as ApexDDP
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel
        from torch.nn.parallel import DistributedDataParallel as DDP

        Parallel = DDP
        shard = partial(FSDP, use_orig_params=True)


        class Mine(DDP):
            def __getattr__(self, name):
                return getattr(self.module, name)


        class Configured(nn.DataParallel):
            def __init__(self, model):
                super().__init__(model, device_ids=[0, 1])


        def main(net, x):
            a = DDP(net)
            a(x)  #: a => wraps=DistributedDataParallel
            b = ApexDDP(net)
            b(x)  #: b => wraps=DistributedDataParallel
            c = torch.nn.DataParallel(net).cuda()
            c(x)  #: c => wraps=DataParallel
            d = FullyShardedDataParallel(net)
            d(x)  #: d => wraps=FullyShardedDataParallel
            e = shard(net)
            e(x)  #: e => wraps=FullyShardedDataParallel
            f = Mine(net)
            f(x)  #: f => wraps=DistributedDataParallel
            g = Configured(net)
            g(x)  #: g => wraps=DataParallel
            h = Parallel(net)
            h(x)  #: h => wraps=DistributedDataParallel
            i = torch.compile(a)
            i(x)  #: i => wraps=DistributedDataParallel
            j = torch.nn.parallel.DistributedDataParallel(torch.compile(net))
            j.module(x)  #: j.module => wraps=no
            k = apex.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net))
            k(x)  #: k => wraps=DistributedDataParallel
            net(x)  #: net => wraps=no
            isinstance(net, nn.DataParallel)  #: nn.DataParallel => wraps=no
        """,
    "paths": """
        import torch.nn as nn
        from torch.nn.parallel import DistributedDataParallel as DDP


        def main(args, x):
            model = nn.Linear(2, 2)
            model(x)  #: model => wraps=no
            if args.distributed:
                model = DDP(model, device_ids=[args.gpu])
                model(x)  #: model => wraps=DistributedDataParallel
            elif args.many:
                model = nn.DataParallel(model)
            model.train()  #: model => wraps=DistributedDataParallel,DataParallel?
            train(model, x)
            validate(model.module, x)
            wrapped = wrap(nn.Linear(2, 2))
            wrapped(x)  #: wrapped => wraps=DistributedDataParallel
            fresh = nn.Linear(2, 2)
            chosen = DDP(fresh) if args.distributed else fresh
            chosen(x)  #: chosen => wraps=DistributedDataParallel?


        def train(net, x):
            return net(x)  #: net => wraps=DistributedDataParallel,DataParallel?


        def validate(net, x):
            return net(x)  #: net => wraps=no


        def wrap(net):
            return DDP(net.cuda())


        class Trainer:
            def __init__(self, model, rank):
                self.plain = model
                self.model = DDP(model, device_ids=[rank])

            def step(self, x):
                self.plain(x)  #: self.plain => wraps=no
                return self.model(x)  #: self.model => wraps=DistributedDataParallel
        """,
    "in place": """
        from torch.distributed.fsdp import fully_shard


        def main(model, x):
            for block in model.blocks:
                fully_shard(block)
                block(x)  #: block => wraps=fully_shard
            fully_shard(model)
            model(x)  #: model => wraps=fully_shard


        def shard(net):
            fully_shard(net)


        def other(config, x):
            model = Model(config)
            shard(model)
            model(x)  #: model => wraps=fully_shard
            once = fully_shard(Model(config))
            once(x)  #: once => wraps=fully_shard


        class Trainer:
            def __init__(self, model):
                self.model = model
                fully_shard(self.model)

            def step(self, x):
                return self.model(x)  #: self.model => wraps=fully_shard
        """,
    "composable": """
        from torch.distributed._composable.fsdp import fully_shard
        from torch.distributed._composable.replicate import replicate


        def main(model, x):
            replicate(model)
            fully_shard(model)
            model(x)  #: model => wraps=fully_shard
        """,
    "engines": """
        import deepspeed
        import lightning as L
        import ray.train.torch
        import torch
        from accelerate import Accelerator

        accelerator = Accelerator()
        fabric = L.Fabric()


        def main(args, data, x):
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters())
            loader = torch.utils.data.DataLoader(data)
            engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model)
            engine(x)  #: engine => wraps=deepspeed
            optimizer.step()  #: optimizer => wraps=no
            model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
            model(x)  #: model => wraps=prepared
            next(loader)  #: loader => wraps=no
            net = accelerator.prepare(torch.nn.Linear(2, 2))
            net(x)  #: net => wraps=prepared
            third, optimizer = fabric.setup(torch.nn.Linear(2, 2), optimizer)
            third(x)  #: third => wraps=prepared
            fourth = ray.train.torch.prepare_model(torch.nn.Linear(2, 2))
            fourth(x)  #: fourth => wraps=prepared
        """,
}


def test_the_model_knows_it(expectation: Callable[[], None]) -> None:
    expectation()


def program(semantic_model: Callable[[str], Module], text: str) -> Module:
    return semantic_model(dedent(text).lstrip())


def test_a_wrapper_has_its_model_and_arguments(semantic_model: Callable[[str], Module]) -> None:
    module = program(
        semantic_model,
        """
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP

        net = nn.Linear(2, 2)
        ddp = DDP(module=net, find_unused_parameters=True)
        hidden = DDP(*arguments)
        """,
    )
    first, second = Parallelism.of(module).wrappers
    assert first.wrapping is Wrapping.DDP
    assert first.model is not None and module.source(first.model) == "net"
    assert Parallelism.of(module).inner(first).cls == "torch.nn.Linear"
    assert Parallelism.of(module).argument(first, "find_unused_parameters").constant is True
    assert second.model is None
    assert Parallelism.of(module).wrapper(first.call) is first
    assert Parallelism.of(module).wrapped_by(Wrapping.DATA_PARALLEL) == ()


def test_the_forwards_of_a_wrapper(semantic_model: Callable[[str], Module]) -> None:
    module = program(
        semantic_model,
        """
        from torch.nn.parallel import DistributedDataParallel as DDP


        def train(model, critic, x):
            ddp = DDP(model)
            other = DDP(critic)
            step(ddp, x)
            ddp.train()
            other(x)
            ddp.module(x)
            model(x)


        def step(net, x):
            return net(x)
        """,
    )
    parallelism = Parallelism.of(module)
    first, second = parallelism.wrappers
    assert [module.source(call) for call in parallelism.forwards(first)] == ["net(x)"]
    assert [module.source(call) for call in parallelism.forwards(second)] == ["other(x)"]
    assert len(parallelism.forwards()) == 2


@pytest.mark.parametrize(
    "line",
    [
        "torch.distributed.init_process_group('nccl')",
        "utils.init_distributed_mode(args)",
        "ddp_setup(rank, world_size)",
        "torch.multiprocessing.spawn(main, nprocs=2)",
        "rank = int(os.environ['LOCAL_RANK'])",
        "rank = int(os.environ.get('RANK', 0))",
        "rank = os.getenv('WORLD_SIZE', '1')",
        "several = 'RANK' in os.environ",
        "torch.utils.data.distributed.DistributedSampler(data)",
        "torch.nn.parallel.DistributedDataParallel(net)",
    ],
)
def test_several_processes_run_it(line: str, semantic_model: Callable[[str], Module]) -> None:
    assert Parallelism.of(program(semantic_model, f"import os\nimport torch\n\n{line}\n")).distributed


@pytest.mark.parametrize(
    "line",
    [
        "torch.nn.DataParallel(net)",
        "os.environ['RANK'] = '0'",
        "rank = config['RANK']",
        "torch.distributed.is_available()",
        "torch.distributed.get_rank()",
        "setup(args)",
    ],
)
def test_one_process_may_run_it(line: str, semantic_model: Callable[[str], Module]) -> None:
    assert not Parallelism.of(program(semantic_model, f"import os\nimport torch\n\n{line}\n")).distributed


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from accelerate import Accelerator", {"accelerate"}),
        ("import pytorch_lightning as pl", {"pytorch_lightning"}),
        ("import lightning.pytorch as pl", {"lightning"}),
        ("import deepspeed", {"deepspeed"}),
        (
            "from transformers import Trainer, TrainingArguments",
            {"transformers.Trainer", "transformers.TrainingArguments"},
        ),
        ("from transformers import AutoModel", set()),
        ("import torch.distributed as dist", set()),
    ],
)
def test_who_sees_to_it(line: str, found: set[str], semantic_model: Callable[[str], Module]) -> None:
    assert Parallelism.of(program(semantic_model, f"{line}\n")).frameworks == found
