"""Models that are spread over several devices or processes: what wraps them, and where they are used then.

A wrapper is a call that makes a model run on several devices: ``DataParallel``, ``DistributedDataParallel``,
FSDP in both of its forms, the engine of DeepSpeed, ``prepare`` of Accelerate and ``setup`` of Fabric. What
an expression was wrapped by is followed as loaders are: through names, attributes of ``self``, parameters and
the calls that fill them. ``fully_shard`` changes its model in place; what the variable holds is wrapped then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.identifiers import identifiers, imports
from torchlint.semantics.layers import RETURNS_SELF
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.sources import Ends, Path, Source, Through, onward, steps, traced
from torchlint.semantics.spellings import given_as, last_name, last_words
from torchlint.semantics.values import UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.module import Argument


class Wrapping(IdentityEnum):
    """What makes a model run on several devices."""

    DATA_PARALLEL = "DataParallel"
    """``nn.DataParallel``: one process, which copies the model to each of its devices in every forward."""
    DDP = "DistributedDataParallel"
    """A replica in each process; gradients are averaged in the backward pass. torch's, or that of apex."""
    FSDP = "FullyShardedDataParallel"
    """FSDP1: a wrapper around a module whose parameters become one flat one. torch's, or fairscale's."""
    FULLY_SHARD = "fully_shard"
    """FSDP2: changes a module in place, so that its parameters are sharded one by one."""
    DEEPSPEED = "deepspeed"
    """``deepspeed.initialize``, which gives an engine."""
    PREPARED = "prepared"
    """Accelerate, Fabric, Ray Train or Ignite wrap it as they were told, or not at all."""


DDP = "torch.nn.parallel.DistributedDataParallel"
FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
FULLY_SHARD = "torch.distributed.fsdp.fully_shard"
DATA_PARALLEL = "torch.nn.DataParallel"
SAMPLER = "torch.utils.data.DistributedSampler"

_WRAPPERS = {
    DATA_PARALLEL: Wrapping.DATA_PARALLEL,
    DDP: Wrapping.DDP,
    FSDP: Wrapping.FSDP,
    FULLY_SHARD: Wrapping.FULLY_SHARD,
    "torch.distributed._composable.fully_shard": Wrapping.FULLY_SHARD,
    "torch.distributed._composable.fsdp.fully_shard": Wrapping.FULLY_SHARD,
    "torch.distributed._composable.fsdp.fully_shard.fully_shard": Wrapping.FULLY_SHARD,
    "torch.distributed._composable.replicate": Wrapping.DDP,
    "torch.distributed._composable.replicate.replicate": Wrapping.DDP,
    "apex.parallel.DistributedDataParallel": Wrapping.DDP,
    "apex.parallel.distributed.DistributedDataParallel": Wrapping.DDP,
    "fairscale.nn.FullyShardedDataParallel": Wrapping.FSDP,
    "fairscale.nn.data_parallel.FullyShardedDataParallel": Wrapping.FSDP,
    "deepspeed.initialize": Wrapping.DEEPSPEED,
    "ray.train.torch.prepare_model": Wrapping.PREPARED,
    "ignite.distributed.auto_model": Wrapping.PREPARED,
}
_IN_PLACE = frozenset({Wrapping.FULLY_SHARD})
# Methods of frameworks that prepare models.
_PREPARING = frozenset({"prepare", "prepare_model", "setup", "setup_module"})
_WRAPPING_WORDS = last_words(_WRAPPERS) | _PREPARING
# One of these is in the text of each file that wraps models, and of each that trains one.
_SPOKEN = (
    *("DataParallel", "fully_shard", "replicate", "deepspeed", "auto_model", "prepare_model"),
    *("ccelerator", "abric"),
)
_COMPUTING = ("backward", "loss")
# Their result is the model that they are given, ready for something else.
_HANDING_ON = frozenset(
    {
        "torch.compile",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "apex.parallel.convert_syncbn_model",
        "typing.cast",
    }
)
_RETURNS_SELF = RETURNS_SELF | {"to_empty", "requires_grad_", "type", "share_memory"}

# What processes that work together do first, and what only they do.
_STARTS = frozenset(
    {
        "torch.distributed.init_process_group",
        "torch.distributed.init_device_mesh",
        "torch.distributed.device_mesh.init_device_mesh",
        "torch.multiprocessing.spawn",
        "deepspeed.init_distributed",
        "deepspeed.comm.init_distributed",
        "torch.utils.data.DistributedSampler",
        "torch.distributed.launcher.api.elastic_launch",
        "torch.distributed.elastic.multiprocessing.start_processes",
    }
)
_VARIABLES = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS"}
)

# Packages that hand each process its share of the data, or wrap, or run the loop, as they are told elsewhere.
_FRAMEWORKS = (
    *("accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "fastai", "deepspeed", "composer"),
    *("colossalai", "catalyst", "mmcv", "mmengine", "mmdet", "detectron2", "torchtnt", "ignite", "ray.train"),
    *("ray.air", "megatron", "nemo", "speechbrain", "fairseq", "espnet2", "allennlp", "poutyne", "skorch"),
    *("transformers.Trainer", "transformers.Seq2SeqTrainer", "transformers.TrainingArguments", "trl"),
    *("transformers.Seq2SeqTrainingArguments", "sentence_transformers.SentenceTransformerTrainer"),
    *("horovod", "torchx", "torchtitan", "keras", "tensorpack", "hivemind", "bagua", "paddle"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Wrapper:
    """A call that wraps a model, or shards it in place.

    ``model`` is the model as the call spells it, None where that is hidden in ``*args`` or ``**kwargs``;
    ``name`` is the dotted name of what wraps it.
    """

    wrapping: Wrapping
    name: str
    call: cst.Call
    model: cst.BaseExpression | None


@dataclass(frozen=True, slots=True)
class Wraps:
    """The wrappers that an expression can come out of; not ``always`` if it may also come without one."""

    wrappers: tuple[Wrapper, ...] = ()
    always: bool = False

    def by(self, *wrappings: Wrapping) -> tuple[Wrapper, ...]:
        """Return those of some kinds."""
        return tuple(wrapper for wrapper in self.wrappers if wrapper.wrapping in wrappings)


_NONE = Wraps()


class Parallelism(Part):
    """The wrapped models of one file and of its program; everything is computed on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names

    # ------------------------------------------------------------------ wrappers

    @cached_property
    def wrappers(self) -> tuple[Wrapper, ...]:
        """All calls of the program that wrap a model or shard it in place; those of the file come first."""
        return tuple(wrapper for each in self._wrapping for wrapper in each._own)

    @cached_property
    def _wrapping(self) -> list[Parallelism]:
        """What is known of the files that may wrap models, first of this one."""
        return [self, *map(Parallelism.of, self.module.companions(*_SPOKEN))]

    @cached_property
    def _own(self) -> tuple[Wrapper, ...]:
        """Those of the file itself, by where they stand."""
        if _WRAPPING_WORDS.isdisjoint(identifiers(self.module)):
            return ()
        made = [wrapper for call in self.tree.nodes(cst.Call) for wrapper in self._made(call)]
        return tuple(sorted(made, key=lambda wrapper: self.tree.standing(wrapper.call)))

    @cached_property
    def _by_call(self) -> dict[cst.Call, tuple[Wrapper, ...]]:
        found: dict[cst.Call, tuple[Wrapper, ...]] = {}
        for wrapper in self._own:
            found[wrapper.call] = (*found.get(wrapper.call, ()), wrapper)
        return found

    def wrapped_by(self, *wrappings: Wrapping) -> tuple[Wrapper, ...]:
        """Return the wrappers of some kinds, those of the file first, by where they stand."""
        return tuple(wrapper for wrapper in self.wrappers if wrapper.wrapping in wrappings)

    def wrapper(self, call: cst.Call) -> Wrapper | None:
        """Return what a call wraps; None if it wraps no model, or several."""
        made = self._by_call.get(call, ())
        return made[0] if len(made) == 1 else None

    def _made(self, call: cst.Call) -> tuple[Wrapper, ...]:
        name = self._wrapping_name(call)
        if name is not None:
            keyword = (
                "model" if name in ("deepspeed.initialize", "ray.train.torch.prepare_model") else "module"
            )
            position = 1 if name == "deepspeed.initialize" else 0
            model = given_as(call, keyword, position)
            return (Wrapper(_WRAPPERS[name], name, call, model),)
        match call.func:
            case cst.Attribute(value=owner, attr=cst.Name(method)) if method in _PREPARING:
                accelerator = self.module.value(owner)
                if accelerator.kind is Kind.ACCELERATOR:
                    dotted = f"{accelerator.cls or 'accelerator'}.{method}"
                    models = (a.value for a in call.args if self.module.value(a.value).kind is Kind.MODULE)
                    return tuple(Wrapper(Wrapping.PREPARED, dotted, call, model) for model in models)
            case _:
                pass
        return ()

    def _wrapping_name(self, call: cst.Call) -> str | None:
        """Return the dotted name of the wrapper that a call runs,
        through local subclasses and ``partial``.
        """
        dotted = self.module.qualified(call.func)
        if dotted is not None:
            return dotted if dotted in _WRAPPERS else None
        if not self._may_be_another_name(call.func):
            return None
        callee = self.module.value(call.func)
        if callee.kind is Kind.CLASS and isinstance(callee.definition, cst.ClassDef):
            bases = self.module.classes.info(callee.definition).bases
            return next((base for base in bases if base in _WRAPPERS), None)
        if callee.kind in (Kind.CLASS, Kind.FUNCTION) and callee.cls in _WRAPPERS:
            return callee.cls
        return None

    def _may_be_another_name(self, func: cst.BaseExpression) -> bool:
        """Return whether a name that is called may be a class of the project or a variable, cheaply."""
        kinds = (BindingKind.ASSIGN, BindingKind.CLASS, BindingKind.IMPORT)
        match func:
            case cst.Name():
                return any(binding.kind in kinds for binding in self.names.bindings(func))
            case cst.Attribute(value=cst.Name("self" | "cls"), attr=cst.Name(name)):
                return name in self.names.attributes
            case _:
                return False

    def inner(self, wrapper: Wrapper) -> Value:
        """Return what the model is that a wrapper is given."""
        return self.module.value(wrapper.model) if wrapper.model is not None else UNKNOWN

    def argument(self, wrapper: Wrapper, name: str) -> Argument:
        """Return what a wrapper is told for a parameter."""
        return self.module.argument(wrapper.call, name)

    # ------------------------------------------------------------------ wrapped models

    def wraps(self, node: cst.BaseExpression) -> Wraps:
        """Return the wrappers that the value of an expression can come out of;
        ``model.module`` comes out of none.

        What ``fully_shard`` is given counts before the call, too.
        """
        if not self.wrappers:
            return _NONE
        ends = self._made_by(node)
        found = {wrapper for made in ends if made is not None for wrapper in made}
        # What is wrapped twice comes out of both.
        waiting = list(found)
        for wrapper in waiting:
            inner = {each for made in self._inside(wrapper) if made is not None for each in made}
            waiting += inner - found
            found |= inner
        ordered = tuple(wrapper for wrapper in self.wrappers if wrapper in found)
        return Wraps(ordered, bool(ends) and None not in ends)

    def _inside(self, wrapper: Wrapper) -> Ends[tuple[Wrapper, ...]]:
        """Return what made the model that a wrapper is given."""
        if wrapper.model is None:
            return frozenset()
        if wrapper.wrapping not in _IN_PLACE:
            return self._made_by(wrapper.model)
        onto = steps(self.module, Source(wrapper.model)) or []
        return frozenset[tuple[Wrapper, ...] | None]().union(*map(self._made_by, onto))

    @traced(Through.RETURNS | Through.PARAMETERS)
    def _made_by(self, node: cst.CSTNode, path: Path) -> tuple[Wrapper, ...] | list[Source] | None:
        match node:
            case cst.Call() if node in self._by_call:
                return self._part(node, path)
            case cst.Call(func=func, args=[*_, last]) if self.module.qualified(func) in _HANDING_ON:
                return onward(last.value, path=path)
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in _RETURNS_SELF:
                return onward(owner, path=path)
            case cst.Name():
                bindings = self.names.bindings(node)
                return tuple(w for binding in bindings for w in self._in_place(binding)) or None
            case cst.Attribute(value=cst.Name("self")):
                return tuple(self._in_place_attributes(node)) or None
            case _:
                return None

    def _part(self, call: cst.Call, path: Path) -> tuple[Wrapper, ...] | None:
        """Return what makes a part of what a call of wrappers returns."""
        made = self._by_call[call]
        if not path:
            return made
        if made[0].wrapping is Wrapping.DEEPSPEED:
            return made if path == (0,) else None
        # ``model, optimizer = accelerator.prepare(model, optimizer)``
        at = path[0]
        if not isinstance(at, int) or not -len(call.args) <= at < len(call.args):
            return None
        given = call.args[at].value
        return tuple(wrapper for wrapper in made if wrapper.model is given) or None

    def _passed(self, binding: Binding) -> Iterator[cst.BaseExpression]:
        """Yield what the calls of the file pass for a parameter."""
        for call in self.module.callers(binding.scope.node):
            argument = self.module.argument(call, binding.name)
            if argument.given and argument.node is not None:
                yield argument.node

    # ------------------------------------------------------------------ sharded in place

    def _in_place(self, binding: Binding) -> Iterator[Wrapper]:
        """Yield what shards the model that a variable holds."""
        for each in self._wrapping:
            yield from each._sharded[0].get(binding, ())

    def _in_place_attributes(self, node: cst.Attribute) -> Iterator[Wrapper]:
        """Yield the same of ``self.model``."""
        key = self._attribute_key(node)
        for each in self._wrapping:
            yield from each._sharded[1].get(key, ())

    @cached_property
    def _sharded(
        self,
    ) -> tuple[dict[Binding, list[Wrapper]], dict[tuple[cst.CSTNode | None, str], list[Wrapper]]]:
        """What the file shards in place, by definition of a variable and by class and name."""
        variables: dict[Binding, list[Wrapper]] = {}
        attributes: dict[tuple[cst.CSTNode | None, str], list[Wrapper]] = {}

        def add(node: cst.BaseExpression, wrapper: Wrapper) -> None:
            if isinstance(node, cst.Attribute) and last_name(node.value) == "self":
                attributes.setdefault(self._attribute_key(node), []).append(wrapper)
            if not isinstance(node, cst.Name):
                return
            for binding in self.names.bindings(node):
                known = variables.setdefault(binding, [])
                if wrapper in known:
                    continue
                known.append(wrapper)
                if binding.kind is BindingKind.PARAMETER:
                    for given in self._passed(binding):
                        add(given, wrapper)

        for wrapper in self._own:
            if wrapper.wrapping in _IN_PLACE and wrapper.model is not None:
                add(wrapper.model, wrapper)
        return variables, attributes

    def _attribute_key(self, node: cst.Attribute) -> tuple[cst.CSTNode | None, str]:
        return self.tree.enclosing(node, cst.ClassDef), node.attr.value

    # ------------------------------------------------------------------ where they are used

    @cached_property
    def _forwards(self) -> tuple[tuple[cst.Call, Wraps], ...]:
        """The calls of the program that run a wrapped model, with what wrapped it."""
        if not self.wrappers:
            return ()
        others = map(Parallelism.of, self.module.companions(*_COMPUTING))
        return tuple(forward for each in (self, *others) for forward in each._own_forwards)

    @cached_property
    def _own_forwards(self) -> tuple[tuple[cst.Call, Wraps], ...]:
        if not self.wrappers:
            return ()
        found = []
        for call in self.tree.nodes(cst.Call):
            func = call.func
            if isinstance(func, (cst.Name, cst.Attribute)) and self.names.qualified(func) is None:
                wraps = self.wraps(func)
                if wraps.wrappers:
                    found.append((call, wraps))
        return tuple(found)

    def forwards(self, wrapper: Wrapper | None = None) -> list[cst.Call]:
        """Return the calls that run what a wrapper made, ``model(x)``, by default of any;
        the file's come first.
        """
        return [call for call, wraps in self._forwards if wrapper is None or wrapper in wraps.wrappers]

    # ------------------------------------------------------------------ the file as a whole

    @cached_property
    def distributed(self) -> bool:
        """Whether the program shows that several processes run it together.

        A wrapper of several processes does, and so do process groups, distributed samplers, helpers that set
        all that up (``init_distributed_mode``) and the variables that a launcher sets.
        """
        others = map(Parallelism.of, self.module.companions("dist", "deepspeed", "DataParallel", *_VARIABLES))
        return any(next(each._signs(), None) is not None for each in (self, *others))

    def _signs(self) -> Iterator[cst.CSTNode]:
        """Yield what shows that several processes run the file together."""
        single = (Wrapping.DATA_PARALLEL, Wrapping.PREPARED)
        yield from (wrapper.call for wrapper in self._own if wrapper.wrapping not in single)
        for call in self.tree.nodes(cst.Call):
            word = last_name(call.func) or ""
            dotted = self.module.qualified(call.func)
            if dotted in _STARTS or _sets_up_processes(word):
                yield call
        if not any(map(self.tree.mentions, _VARIABLES)):
            return
        for text in self.tree.nodes(cst.SimpleString):
            if text.evaluated_value in _VARIABLES and self._is_read(text):
                yield text

    def _is_read(self, text: cst.SimpleString) -> bool:
        """Return whether it is ``os.environ["RANK"]``, ``os.getenv("RANK")``, ``"RANK" in os.environ``."""
        for ancestor in self.tree.ancestors(text):
            match ancestor:
                case cst.Arg() | cst.Index() | cst.SubscriptElement():
                    continue
                case cst.Call(func=func):
                    return self.module.qualified(func) in ("os.getenv", "os.environ.get")
                case cst.Subscript(value=value):
                    if isinstance(self.tree.parent(ancestor), cst.AssignTarget):
                        return False
                    return self.module.qualified(value) == "os.environ"
                case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In(), comparator=where)]):
                    return self.module.qualified(where) == "os.environ"
                case _:
                    return False
        return False

    @cached_property
    def frameworks(self) -> frozenset[str]:
        """The packages imported that distribute models and data themselves, or as they are told elsewhere."""
        packages = {name.partition(".")[0] for name in _FRAMEWORKS}
        others = map(Parallelism.of, self.module.companions(*sorted(packages)))
        return self._own_frameworks.union(*(each._own_frameworks for each in others))

    @cached_property
    def _own_frameworks(self) -> frozenset[str]:
        return frozenset(package for package in _FRAMEWORKS if imports(self.module, (package,)))


def _sets_up_processes(name: str) -> bool:
    """Return whether a helper of this name has processes find each other: ``ddp_setup``."""
    return has(name, Role.DISTRIBUTED) and (begins(name, Role.BEGINNING) or ends(name, Role.BEGINNING))
