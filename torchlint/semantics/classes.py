"""The classes of a file: what they inherit, which methods they have, what their instances are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import libcst as cst

from torchlint.semantics.api.families import is_lightning_module, is_loader_class, is_model_class
from torchlint.semantics.api.results import function_result
from torchlint.semantics.conventions import of_other_framework, other_module
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.names import AttributeBinding, BindingKind, Names
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name, word_of
from torchlint.semantics.values import Kind
from torchlint.syntax import SyntaxTree

# Bases whose ``forward`` handles the items of a dataset or a text.
_NO_MODULE_BASE = ("Transform", "Dataset", "Tokenizer", "Processor", "Env", "Environment")
# What makes tensors of a module in its constructor.
_REGISTERED = ("Parameter(", "register_buffer(")
_LIGHTNING_PACKAGES = frozenset({"lightning", "pytorch_lightning"})
_KINDS = {
    "tensor": Kind.TENSOR,
    "module": Kind.MODULE,
    "optimizer": Kind.OPTIMIZER,
    "scheduler": Kind.SCHEDULER,
    "scaler": Kind.SCALER,
    "loader": Kind.LOADER,
    "dataset": Kind.DATASET,
    "sampler": Kind.SAMPLER,
    "device": Kind.DEVICE,
    "generator": Kind.GENERATOR,
}
_OTHER_CLASSES = {
    "torch.autograd.Function": Kind.OBJECT,
    "accelerate.Accelerator": Kind.ACCELERATOR,
    "lightning.Fabric": Kind.ACCELERATOR,
    "lightning.fabric.Fabric": Kind.ACCELERATOR,
    "transformers.AdamW": Kind.OPTIMIZER,
    "transformers.Adafactor": Kind.OPTIMIZER,
    "apex.optimizers.FusedAdam": Kind.OPTIMIZER,
    "apex.parallel.DistributedDataParallel": Kind.MODULE,
    "numpy.ndarray": Kind.NDARRAY,
    "builtins.int": Kind.NUMBER,
    "builtins.float": Kind.NUMBER,
    "builtins.bool": Kind.BOOL,
    "builtins.str": Kind.STRING,
    "torch.dtype": Kind.DTYPE,
    "torch.Size": Kind.SHAPE,
}


@cache
def kind_of_class(qualified: str) -> Kind:
    """Return what instances of a library class are; ``Kind.UNKNOWN`` where torchlint has no use for them."""
    other = _OTHER_CLASSES.get(qualified)
    if other is not None:
        return other
    if qualified.rpartition(".")[2][:1].isupper():
        result = function_result(qualified)
        if isinstance(result, str) and result in _KINDS:
            return _KINDS[result]
    if is_loader_class(qualified):
        return Kind.LOADER
    if is_model_class(qualified):
        return Kind.MODULE
    return Kind.UNKNOWN


_DEEP = 100
"""Longer lineages are not kept: those of all classes of a chain are the square of its length."""


@dataclass(eq=False, slots=True)
class ClassInfo:
    """A class of this file.

    ``bases`` are the dotted names of the library classes that it inherits from, nearest first, through
    classes of this file as well; ``opaque`` says that some base is of neither sort. ``heir_of_lightning``:
    such a base is, as far as can be told, a LightningModule of another file.
    """

    node: cst.ClassDef
    kind: Kind
    bases: tuple[str, ...]
    parents: tuple[ClassInfo, ...]
    opaque: bool
    methods: dict[str, cst.FunctionDef]
    heir_of_lightning: bool = False
    _ancestors: tuple[ClassInfo, ...] | None = None

    @property
    def lineage(self) -> tuple[ClassInfo, ...]:
        """The class and its ancestors in this file, nearest first."""
        if self._ancestors is not None:
            return (self, *self._ancestors)
        found: dict[ClassInfo, None] = {}
        waiting = [self]
        while waiting:
            info = waiting.pop()
            if info not in found:
                found[info] = None
                waiting.extend(reversed(info.parents))
        lineage = tuple(found)
        if len(lineage) <= _DEEP:
            self._ancestors = lineage[1:]
        return lineage

    @property
    def lightning(self) -> bool:
        """Whether it is a LightningModule, whose hooks run under the trainer's care."""
        return self.heir_of_lightning or any(map(is_lightning_module, self.bases))

    def inherits(self, *names: str) -> bool:
        """Return whether one of these library classes is among its bases."""
        return any(name in self.bases for name in names)

    def method(self, name: str) -> cst.FunctionDef | None:
        """Return the method that instances have under this name, if a class of this file defines it."""
        for info in self.lineage:
            if name in info.methods:
                return info.methods[name]
        return None

    @property
    def constructor(self) -> cst.FunctionDef | None:
        """The ``__init__`` that takes the arguments of the class; None where a library's does, be it by way
        of one that hands on all that it is given.
        """
        own = [info.methods["__init__"] for info in self.lineage if "__init__" in info.methods]
        return next((each for each in own if not hands_on_everything(each)), None)


def hands_on_everything(init: cst.FunctionDef) -> bool:
    """Return whether it is ``def __init__(self, *args, **kwargs): super().__init__(*args, **kwargs)``,
    whatever follows.
    """
    match init:
        case cst.FunctionDef(
            params=cst.Parameters(
                params=[_],
                star_arg=cst.Param(name=stars),
                star_kwarg=cst.Param(name=keywords),
                kwonly_params=[],
            ),
            body=cst.IndentedBlock(body=body),
        ):
            return any(_hands_on(statement, stars.value, keywords.value) for statement in body)
    return False


def _hands_on(statement: cst.BaseStatement, stars: str, keywords: str) -> bool:
    match statement:
        case cst.SimpleStatementLine(
            body=[
                cst.Expr(
                    value=cst.Call(
                        func=cst.Attribute(value=cst.Call(func=cst.Name("super")), attr=cst.Name("__init__")),
                        args=[
                            cst.Arg(star="*", value=cst.Name() as first),
                            cst.Arg(star="**", value=cst.Name() as second),
                        ],
                    )
                )
            ]
        ):
            return (first.value, second.value) == (stars, keywords)
    return False


def _fields(definition: cst.ClassDef) -> list[str]:
    """Return the names that a class annotates in its body, in order."""
    found = []
    for statement in definition.body.body:
        for part in statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,):
            if isinstance(part, cst.AnnAssign) and isinstance(part.target, cst.Name):
                found.append(part.target.value)
    return found


class Classes:
    """The classes of one file, computed on demand."""

    answers_for_all = frozenset({"owner"})

    def __init__(self, tree: SyntaxTree, names: Names) -> None:
        self.tree = tree
        self.names = names
        self.link = names.link
        self.fixpoint = names.fixpoint
        self._pending: set[cst.ClassDef] = set()

    @staticmethod
    def counterpart(module: Any) -> Classes:
        """Return the classes of a module."""
        classes: Classes = module.classes
        return classes

    @remembered
    def info(self, node: cst.ClassDef) -> ClassInfo:
        """Return what is known of a class of this file."""
        self._pending.add(node)
        found = self._make(node)
        self._pending.discard(node)
        return found

    def _make(self, node: cst.ClassDef) -> ClassInfo:
        bases: dict[str, None] = {}
        parents: list[ClassInfo] = []
        opaque = False
        for arg in node.bases:
            base = arg.value
            if isinstance(base, cst.Subscript):  # Generic[T], Dataset[int]
                base = base.value
            own = self.definition(base)
            if own is not None and own is not node and own not in self._pending:
                parents.append(self.info(own))
                continue
            dotted = self.names.qualified(base)
            if dotted is None:
                opaque = True
            elif dotted not in ("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"):
                bases.setdefault(dotted)
                opaque = opaque or kind_of_class(dotted) is Kind.UNKNOWN
        for parent in parents:
            for dotted in parent.bases:
                bases.setdefault(dotted)
            opaque = opaque or parent.opaque
        methods = {
            statement.name.value: statement
            for statement in _statements(node.body)
            if isinstance(statement, cst.FunctionDef)
        }
        kinds = [kind_of_class(dotted) for dotted in bases] + [parent.kind for parent in parents]
        kind = next((k for k in kinds if k not in (Kind.UNKNOWN, Kind.OBJECT)), Kind.OBJECT)
        handles_data = any(dotted.endswith(_NO_MODULE_BASE) for dotted in bases)
        modular = opaque and not handles_data
        modular = modular and not self.of_other_framework and not any(map(other_module, bases))
        if kind is Kind.OBJECT and modular:
            # A base of another file, and it has a forward: a module by every convention.
            forward = "forward" in methods and self._calls_base(methods)
            shown = forward or self._asks_itself_as_module(methods) or self._registers_tensors(methods)
            kind = Kind.MODULE if shown else kind
        heir = any(parent.heir_of_lightning for parent in parents)
        if not heir and kind in (Kind.OBJECT, Kind.MODULE) and opaque:
            heir = not handles_data and self._takes_lightning_steps(methods)
        kind = Kind.MODULE if heir else kind
        return ClassInfo(node, kind, tuple(bases), tuple(parents), opaque, methods, heir)

    @cached_property
    def of_other_framework(self) -> bool:
        """Whether the file imports another framework and not torch, so that its modules are those."""
        return of_other_framework(self.names)

    def _takes_lightning_steps(self, methods: dict[str, cst.FunctionDef]) -> bool:
        """Return whether a class of a file that imports Lightning defines a step over a batch."""
        steps = [methods[name] for name in ("training_step", "validation_step") if name in methods]
        given = [step.params.params[1].name.value for step in steps if len(step.params.params) > 1]
        if not any(name == "batch" or name.endswith("_batch") for name in given):
            return False
        bindings = (found for bound in self.names.module_scope.bindings.values() for found in bound)
        return any((binding.imported or "").partition(".")[0] in _LIGHTNING_PACKAGES for binding in bindings)

    def _asks_itself_as_module(self, methods: dict[str, cst.FunctionDef]) -> bool:
        """Return whether a method asks where its own parameters are: ``next(self.parameters())``."""
        if "parameters" in methods or not self.tree.mentions("next(self.parameters())"):
            return False
        return any(
            isinstance(node, cst.Call) and _is_first_parameter(node)
            for method in methods.values()
            for node in self.tree.descendants(method)
        )

    def _registers_tensors(self, methods: dict[str, cst.FunctionDef]) -> bool:
        """Return whether a constructor hands on to a base class and makes parameters or buffers."""
        init = methods.get("__init__")
        if init is None or not any(map(self.tree.mentions, _REGISTERED)) or not self._calls_base(methods):
            return False
        for node in self.tree.descendants(init):
            match node:
                case cst.Assign(targets=[cst.AssignTarget(cst.Attribute())], value=cst.Call(func=func)):
                    if self.names.qualified(func) == "torch.nn.Parameter":
                        return True
                case cst.Call(func=cst.Attribute(value=cst.Name(owner), attr=cst.Name("register_buffer"))):
                    if owner == self.self_name(init):
                        return True
        return False

    def _calls_base(self, methods: dict[str, cst.FunctionDef]) -> bool:
        """Return whether the constructor hands on to a base class, as modules must."""
        init = methods.get("__init__")
        if init is None:
            return True
        return any(
            isinstance(node, cst.Attribute) and node.attr.value == "__init__"
            for node in self.tree.descendants(init)
        )

    def definition(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class of this file that a name stands for, if it can only be that one."""
        if isinstance(node, cst.Name):
            bindings = self.names.bindings(node)
            imported = self.link is not None and len(bindings) == 1
            if imported and bindings[0].kind is BindingKind.IMPORT:
                target = self.names.imported_by(bindings[0])
                bindings = target if isinstance(target, tuple) else ()
        elif isinstance(node, cst.Attribute) and self.link is not None:
            target = self.names.imported(node)
            bindings = target if isinstance(target, tuple) else ()
        else:
            return None
        found = [b.node for b in bindings]
        if len(found) == 1 and isinstance(found[0], cst.ClassDef):
            return found[0]
        return None

    def owner(self, function: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class whose body holds this method directly; None for plain functions."""
        if not isinstance(function, cst.FunctionDef):
            return None
        maker = self.names.scope(function).node
        return maker if isinstance(maker, cst.ClassDef) else None

    def heirs(self, node: cst.ClassDef, *, most: int = 0) -> list[cst.ClassDef]:
        """Return the classes that inherit from this one, however far down, and the class itself.

        Those of this file, and of files that import from it; of a library as ``Link.users``.
        """
        name = node.name.value
        found = [node, *self._heirs_here(name, node)]
        if self.link is None:
            return found
        others = [
            self.counterpart(module) for module in self.link.users(self, (name,), heirs=True, most=most)
        ]
        return [*found, *(heir for classes in others for heir in classes._heirs_here(name, node))]

    @remembered
    def _heirs_here(self, name: str, node: cst.ClassDef) -> list[cst.ClassDef]:
        """Return the classes of this file that inherit from one of any file, which goes by a name.

        Nothing is asked of classes with other bases, for which many more files may have to be read.
        """
        found: dict[cst.ClassDef, None] = {}
        names = [name]
        for base in names:
            for heir in self._by_base.get(base, ()):
                if heir is not node and any(info.node is node for info in self.info(heir).lineage):
                    found[heir] = None
                    names += [heir.name.value] if heir.name.value not in names else []
        return sorted(found, key=self.tree.order.__getitem__)

    @cached_property
    def _by_base(self) -> dict[str, list[cst.ClassDef]]:
        """The classes of this file by what their bases are called."""
        found: dict[str, list[cst.ClassDef]] = {}
        for heir in self.tree.nodes(cst.ClassDef):
            assert isinstance(heir, cst.ClassDef)
            for arg in heir.bases:
                base = arg.value.value if isinstance(arg.value, cst.Subscript) else arg.value
                found.setdefault(word_of(base), []).append(heir)
        return found

    def self_name(self, method: cst.FunctionDef) -> str | None:
        """Return the name under which a method knows its instance; None for static and class methods."""
        if self.owner(method) is None or (not method.params.params and not method.params.posonly_params):
            return None
        if _wrapping(method) is not None:
            return None
        first = (*method.params.posonly_params, *method.params.params)[0]
        return first.name.value

    def class_name(self, method: cst.FunctionDef) -> str | None:
        """Return the name under which a class method knows the class; None for any other."""
        positional = (*method.params.posonly_params, *method.params.params)
        return positional[0].name.value if positional and self.is_of_class(method) else None

    def is_of_class(self, function: cst.CSTNode) -> bool:
        """Return whether a function is a class method."""
        if not isinstance(function, cst.FunctionDef) or self.owner(function) is None:
            return False
        return _wrapping(function) == "classmethod"

    def binds_first(self, function: cst.CSTNode, *, named_by_class: bool = False) -> bool:
        """Return whether a call leaves out the first parameter of a function: ``self`` or ``cls``.

        A method ``named_by_class``, as in ``Base.update(self, x)``, is given its instance.
        """
        if not isinstance(function, cst.FunctionDef) or self.owner(function) is None:
            return False
        wrapping = _wrapping(function)
        return wrapping == "classmethod" if wrapping is not None else not named_by_class

    @remembered
    def attribute_bindings(self, info: ClassInfo, attr: str) -> list[AttributeBinding]:
        """Return the assignments ``self.attr = …`` in the methods of a class and of its ancestors here."""
        lineage = dict.fromkeys(ancestor.node for ancestor in info.lineage)
        found = [binding for node in lineage for binding in self.assigned(node, attr)]
        return sorted(found, key=lambda binding: self.tree.order[binding.target])

    def lacks(self, node: cst.ClassDef, attr: str) -> bool:
        """Return whether instances of a class certainly have no attribute or method of a name.

        Apart from those that all modules have, if it is one.
        """
        info = self.info(node)
        if info.opaque or info.method("__getattr__") is not None:
            return False
        if any(base != "torch.nn.Module" for base in info.bases):
            return False
        return not any(self.has_own(each.node, attr) for each in info.lineage)

    def has_own(self, node: cst.ClassDef, attr: str) -> bool:
        """Return whether a class, or code in its file, gives an attribute to its instances."""
        names = self.names
        return attr in names.scope_of(node).bindings or attr in names.attributes

    def assigned(self, node: cst.ClassDef, attr: str) -> list[AttributeBinding]:
        """Return the assignments ``self.attr = …`` in the methods of one class."""
        return self._assigned.get((node, attr), [])

    @remembered
    def parameter_behind(self, definition: cst.ClassDef, attr: str) -> tuple[str, int | None] | None:
        """Return the parameter of the constructor that becomes an attribute as it is,
        with its place among those.

        The place is None where a keyword alone can tell. A dataclass, or a class with a base of a library and
        without a constructor of its own, takes its annotated fields.
        """
        info = self.info(definition)
        init = info.method("__init__")
        if init is not None:
            assigned = [b for b in self.attribute_bindings(info, attr) if b.value is not None]
            value = assigned[0].value if len(assigned) == 1 else None
            bindings = self.names.bindings(value) if value is not None else ()
            parameters = [each.name.value for each in init.params.params[1:]]
            if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
                return None
            name = bindings[0].name
            return (name, parameters.index(name)) if name in parameters else None
        if not any(each.node.decorators for each in info.lineage) and not info.bases and not info.opaque:
            return None
        fields = [field for each in reversed(info.lineage) for field in _fields(each.node)]
        if attr not in fields:
            return None
        return attr, fields.index(attr) if len(info.lineage) == 1 and not info.opaque else None

    def field_of(self, definition: cst.ClassDef, argument: cst.Arg, call: cst.Call) -> str | None:
        """Return the field that an argument fills of a class without a constructor of its own."""
        info = self.info(definition)
        if info.method("__init__") is not None or argument.star:
            return None
        fields = [field for each in reversed(info.lineage) for field in _fields(each.node)]
        if argument.keyword is not None:
            return argument.keyword.value if argument.keyword.value in fields else None
        place = next(i for i, other in enumerate(call.args) if other is argument)
        return fields[place] if place < len(fields) else None

    @cached_property
    def _assigned(self) -> dict[tuple[cst.ClassDef, str], list[AttributeBinding]]:
        """The assignments ``self.attr = …`` by the class in whose methods they stand."""
        found: dict[tuple[cst.ClassDef, str], list[AttributeBinding]] = {}
        for attr, bindings in self.names.attributes.items():
            for binding in bindings:
                cls = self.instance_class(binding.target.value)
                if cls is not None and binding.kind is not BindingKind.DELETE:
                    found.setdefault((cls, attr), []).append(binding)
        return found

    def instance_class(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class of this file whose method calls this expression ``self``."""
        if not isinstance(node, cst.Name):
            return None
        for binding in self.names.bindings(node):
            if not isinstance(binding.node, cst.Param):
                return None
            function = self.tree.parent(self.tree.parents[binding.node])
            if isinstance(function, cst.FunctionDef) and self.self_name(function) == node.value:
                return self.owner(function)
        return None


def _statements(body: cst.BaseSuite) -> list[cst.CSTNode]:
    """Return the statements of a class body, those under ``if`` and ``try`` included."""
    found: list[cst.CSTNode] = []
    for statement in body.body:
        found.append(statement)
        if isinstance(statement, cst.If):
            found.extend(_statements(statement.body))
            if isinstance(statement.orelse, cst.Else):
                found.extend(_statements(statement.orelse.body))
        elif isinstance(statement, cst.Try):
            found.extend(_statements(statement.body))
    return found


def _is_first_parameter(call: cst.Call) -> bool:
    match call:
        case cst.Call(
            func=cst.Name("next"),
            args=[
                cst.Arg(
                    value=cst.Call(func=cst.Attribute(value=cst.Name("self"), attr=cst.Name("parameters")))
                )
            ],
        ):
            return True
        case _:
            return False


def _wrapping(method: cst.FunctionDef) -> str | None:
    """Return which decorator keeps the instance from a method: ``staticmethod`` or ``classmethod``."""
    for each in method.decorators:
        if isinstance(each.decorator, cst.Name) and each.decorator.value in ("staticmethod", "classmethod"):
            return each.decorator.value
    return None


def is_property(method: cst.FunctionDef) -> bool:
    """Return whether a method is read like an attribute."""
    return any(last_name(each.decorator) in ("property", "cached_property") for each in method.decorators)
