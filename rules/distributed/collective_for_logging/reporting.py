"""Whether a value is computed to be looked at by people, and by nothing else, while a loop runs.

What is printed, logged, drawn, put into a meter or added to a running total could as well be computed every
hundredth step, or once after the loop. What a condition asks for, what gradients flow back through, and what
leaves the file could not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.names import BindingKind
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import is_logger
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Methods that hand on what they are called on, or numbers computed from it.
_SAME = frozenset(
    {"item", "detach", "cpu", "clone", "float", "double", "mean", "sum", "numpy", "tolist", "to", "view"}
    | {"reshape", "squeeze", "unsqueeze", "flatten", "div", "div_", "mul", "mul_", "exp", "sqrt", "values"}
    | {
        "items",
        "keys",
        "get",
        "copy",
        "max",
        "min",
        "half",
        "long",
        "int",
        "data",
        "true_divide",
        "contiguous",
    }
    | {
        "all",
        "round",
        "log",
        "log10",
        "log2",
        "add",
        "sub",
        "format",
        "join",
        "copy_",
        "float_",
        "wait",
        "pow",
    }
    | {"repeat", "expand", "cuda", "type", "median", "ljust", "rjust", "strip", "unbind", "split"}
)
# Functions that hand on what they are given.
_PASSING = frozenset(
    {
        "float",
        "int",
        "round",
        "sum",
        "max",
        "min",
        "str",
        "format",
        "stack",
        "cat",
        "mean",
        "tensor",
        "as_tensor",
    }
    | {
        "exp",
        "sqrt",
        "zip",
        "dict",
        "list",
        "tuple",
        "sorted",
        "log",
        "log10",
        "log2",
        "array",
        "repr",
        "abs",
    }
    | {"enumerate", "reversed", "deepcopy", "asarray", "hstack", "vstack", "average", "true_divide", "div"}
    | {"len", "std", "norm", "median", "zeros_like", "OrderedDict", "concat", "concatenate", "detach", "map"}
)
# What writes its arguments somewhere, in Python, TensorBoard and progress bars.
_WRITING = frozenset(
    {"pprint", "echo", "write", "tqdm_write", "info", "debug", "warning", "warn", "error", "message", "msg"}
    | {"add_scalar", "add_scalars", "add_histogram", "add_text", "add_summary", "scalar", "track", "display"}
    | {"set_postfix", "set_postfix_str", "set_description", "set_description_str", "show", "plot", "line"}
    | {"writerow"}
)
# ``math.log`` and ``torch.log`` compute.
_COMPUTING = ("math.", "numpy.", "torch.", "builtins.")
_METER_METHODS = frozenset(
    {"update", "add", "record", "append", "extend", "push", "put", "meter", "step_update", "accumulate"}
)
_METER = (Role.METRIC, Role.LOSS, Role.SCORE, Role.RECORD, Role.PROGRESS, Role.LOGGING)
_TEXTS = frozenset({"__str__", "__repr__", "__format__"})
_RECORDS = frozenset({"dict", "OrderedDict", "defaultdict", "list"})
_STOPPING = (Role.STOPPING, Role.BEST, Role.SCHEDULER, Role.SCALER, Role.OPTIMIZER, Role.COPY)


def reported_only(module: Module, values: Sequence[cst.BaseExpression], region: cst.CSTNode) -> bool:
    """Return whether values are used within ``region`` to report them only,
    and are reported or collected at all.

    ``region`` is the loop in whose iterations they are computed. Behind the loop anything may become of them.
    """
    return _Search(module, region).reported(values)


def _writes(name: str) -> bool:
    """Return whether what has this name writes what it is given: ``info``,
    ``log_metrics``, ``rank0_print``.
    """
    logs = begins(name, Role.LOGGING) or ends(name, Role.LOGGING)
    return name.lower() in _WRITING or logs


def read_after(module: Module, name: cst.Name, region: cst.CSTNode) -> list[cst.BaseExpression] | None:
    """Return the reads of a variable in ``region`` behind a place where what it holds is changed in place.

    Those in front of the place are among them if it keeps its value from one iteration to the next. None if
    what it holds may be known by another name.
    """
    order = module.tree.order
    reads: list[cst.BaseExpression] = []
    for binding in module.bindings(name):
        if binding.kind not in (
            BindingKind.ASSIGN,
            BindingKind.AUGMENT,
            BindingKind.WALRUS,
            BindingKind.PARAMETER,
        ):
            return None
        if isinstance(binding.value, cst.Attribute) and binding.value.attr.value not in ("data", "loss"):
            return None
        uses = [use for use in module.uses(binding) if use is not name]
        fresh = module.tree.contains(region, binding.node) or binding.kind is BindingKind.PARAMETER
        reads += [use for use in uses if not fresh or order[use] > order[name]]
    return reads


class _Search:
    """The way of one value through a loop."""

    def __init__(self, module: Module, region: cst.CSTNode) -> None:
        self.module = module
        self.tree = module.tree
        self.region = region
        self.waiting: deque[cst.BaseExpression] = deque()
        self.seen: set[cst.CSTNode] = set()
        self.uses = 0

    def reported(self, values: Sequence[cst.BaseExpression]) -> bool:
        for value in values:
            if self._inside(value):
                self._follow(value)
            else:
                self.uses += 1
        while self.waiting:
            if not self._handed_on(self.waiting.popleft()):
                return False
        return self.uses > 0

    def _follow(self, node: cst.BaseExpression) -> bool:
        if node not in self.seen:
            self.seen.add(node)
            self.waiting.append(node)
        return True

    # ------------------------------------------------------------------ one expression

    def _handed_on(self, node: cst.BaseExpression) -> bool:
        """Return whether all that becomes of an expression is, or will be found to be, a report."""
        parent = self.tree.parent(node)
        match parent:
            case cst.Attribute(value=value, attr=cst.Name(name)) if value is node:
                return self._attribute(parent, name)
            case cst.Subscript(value=value) if value is node:
                return self._follow(parent)
            case cst.BinaryOperation() | cst.UnaryOperation():
                if isinstance(getattr(parent, "operator", None), cst.Not):
                    return False
                return self._follow(parent)
            case cst.Element() | cst.DictElement() | cst.StarredElement() | cst.StarredDictElement():
                holder = self.tree.parent(parent)
                return isinstance(holder, cst.BaseExpression) and self._follow(holder)
            case cst.FormattedStringExpression():
                holder = self.tree.parent(parent)
                return isinstance(holder, cst.BaseExpression) and self._follow(holder)
            case cst.ConcatenatedString():
                return self._follow(parent)
            case cst.ListComp() | cst.GeneratorExp() | cst.SetComp() | cst.DictComp():
                return self._follow(parent)
            case cst.CompFor(target=target) if parent.iter is node:
                return self._bound(target)
            case cst.For(target=target) if parent.iter is node:
                return self._bound(target)
            case cst.IfExp() if parent.test is not node:
                return self._follow(parent)
            case cst.Arg():
                return self._argument(parent)
            case cst.Assign():
                return all(self._bound(target.target) for target in parent.targets)
            case cst.AnnAssign() | cst.NamedExpr():
                bound = self._bound(parent.target)
                return bound and (isinstance(parent, cst.AnnAssign) or self._follow(parent))
            case cst.AugAssign():
                # As its target, the value of before is read, and what comes of it is found by name.
                self.uses += parent.value is node
                return self._bound(parent.target)
            case cst.Return():
                return self._returned(parent)
            case cst.Expr() | cst.Del() | cst.AssignTarget():
                # Dropped, or a dictionary that gets something else.
                return True
            case _:
                return False

    def _attribute(self, attribute: cst.Attribute, name: str) -> bool:
        holder = self.tree.parent(attribute)
        if isinstance(holder, cst.Call) and holder.func is attribute:
            if name in _SAME:
                return self._follow(holder)
            # ``losses.update(…)``, ``total.append(…)``: what is collected, not what is read.
            return name in _METER_METHODS or name in ("reset", "zero_", "clear")
        if name in ("shape", "dtype", "device", "ndim"):
            return True
        return name in ("data", "T", "real", "value") and self._follow(attribute)

    def _argument(self, argument: cst.Arg) -> bool:
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call) or argument.star == "*":
            return False
        if argument.star:
            self.uses += 1
            return self._sink(call)
        name = last_name(call.func) or ""
        if self._sink(call):
            self.uses += 1
            # What a call that reports hands back may be the value itself.
            return isinstance(self.tree.parent(call), cst.Expr) or self._follow(call)
        dotted = self.module.qualified(call.func)
        if dotted is not None and name in _PASSING:
            return self._follow(call)
        if dotted == "torch.distributed.barrier":
            return True
        if dotted is not None and dotted.startswith("torch.distributed."):
            # It is exchanged, that is, changed in place; what reads it afterwards is found by its name.
            return True
        if isinstance(call.func, cst.Attribute) and name in _SAME and not name.endswith("_"):
            return self._follow(call)
        callee = self.module.callee(call)
        if isinstance(callee, cst.FunctionDef):
            return self._into(call, argument, callee)
        return False

    def _sink(self, call: cst.Call) -> bool:
        """Return whether a call reports or collects what it is given."""
        name = last_name(call.func) or ""
        dotted = self.module.qualified(call.func)
        if _writes(name) and not (
            dotted is not None and dotted != "builtins.print" and dotted.startswith(_COMPUTING)
        ):
            return True
        if not isinstance(call.func, cst.Attribute):
            return False
        owner = call.func.value
        if is_logger(self.module, owner):
            return True
        if name not in _METER_METHODS:
            return False
        word = last_name(owner) or ""
        if has(word, *_STOPPING) or self.module.value(owner).kind in (
            Kind.OPTIMIZER,
            Kind.SCHEDULER,
            Kind.SCALER,
        ):
            return False
        if name in ("append", "extend") and isinstance(owner, cst.Name):
            self._bound(owner)
        if name in ("append", "extend") and isinstance(owner, cst.Attribute):
            return self._attribute_of(owner, owner.attr.value)
        made = self.module.value(owner).definition
        of_class = made.name.value if isinstance(made, cst.ClassDef) else ""
        return has(word, *_METER) or "Meter" in of_class or "Metric" in of_class

    # ------------------------------------------------------------------ names

    def _bound(self, target: cst.BaseExpression) -> bool:
        """Return whether what is assigned is only reported within the region."""
        targets = [target]
        for each in targets:
            if isinstance(each, (cst.Tuple, cst.List)):
                targets += [element.value for element in each.elements]
            elif not self._takes(each):
                return False
        return True

    def _takes(self, target: cst.BaseExpression) -> bool:
        """Return whether what one target takes is only reported within the region."""
        match target:
            case cst.Name():
                return self._name(target)
            case cst.Subscript(value=cst.Name() as holder):
                self.uses += 1
                return self._is_record(holder) and self._name(holder)
            case cst.Subscript(value=cst.Attribute() as holder):
                self.uses += 1
                return has(last_name(holder), *_METER)
            case cst.Attribute(attr=cst.Name(name)):
                self.uses += 1
                return self._attribute_of(target, name)
            case _:
                return False

    def _is_record(self, holder: cst.Name) -> bool:
        """Return whether a variable holds numbers for a report: by its name, or as a dictionary made here."""
        if has(holder.value, *_METER):
            return not has(holder.value, *_STOPPING)
        values = [binding.value for binding in self.module.names.bindings_at(holder.value, holder)]
        return bool(values) and all(
            isinstance(value, (cst.Dict, cst.List, cst.DictComp))
            or (isinstance(value, cst.Call) and last_name(value.func) in _RECORDS)
            for value in values
        )

    def _attribute_of(self, target: cst.Attribute, name: str) -> bool:
        """Return whether it is ``bar.desc = …``, ``self.running_loss += …``: kept for reports,
        as no condition reads it.
        """
        if name in ("desc", "postfix"):
            return True
        if not has(name, *_METER) or has(name, *_STOPPING):
            return self._kept_by_class(target, name)
        text = self.tree.source(target)
        for read in SelfAttributes.of(self.module).attribute_reads.get(name, ()):
            if read is not target and self._inside(read) and self.tree.source(read) == text:
                if not self._is_target(read):
                    self._follow(read)
        return True

    def _kept_by_class(self, target: cst.Attribute, name: str) -> bool:
        """Return whether all reads of what a method keeps in ``self`` are followed, whatever it is called."""
        owner = SelfAttributes.of(self.module.home(target)).self_class(target)
        if owner is None:
            return False
        for read in self._reads(owner, name):
            if self._inside(read):
                self._follow(read)
        return True

    def _reads(self, owner: cst.ClassDef, name: str) -> list[cst.Attribute]:
        """Return the reads of an attribute that may be one of the instances of a class,
        in all of its programs.
        """
        home = self.module.home(owner)
        found = SelfAttributes.of(home).self_reads(owner, name)
        for each in (home, *home.companions(f".{name}")):
            found += SelfAttributes.of(each).foreign_reads(name)
        return found

    def _is_target(self, node: cst.CSTNode) -> bool:
        return isinstance(self.tree.parent(node), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))

    def _name(self, name: cst.Name) -> bool:
        scope = self.module.names.lookup(name.value, name)
        if scope is None:
            return False
        own = self.module.binding_of(name)
        followed = [own] if own is not None else list(self.module.bindings(name))
        for binding in followed:
            for use in self.module.uses(binding):
                if use is name:
                    continue
                if self._inside(use):
                    self._follow(use)
                else:
                    # Behind the loop anything may become of it.
                    self.uses += 1
        return True

    def _inside(self, node: cst.CSTNode) -> bool:
        """Return whether a node runs in the iterations: in the region,
        or in a function that the region calls.
        """
        if self.tree.contains(self.region, node):
            return True
        return self.module.function(node) is not self.module.function(self.region)

    # ------------------------------------------------------------------ functions

    def _into(self, call: cst.Call, argument: cst.Arg, function: cst.FunctionDef) -> bool:
        params = function.params
        for parameter in (*params.posonly_params, *params.params, *params.kwonly_params):
            if self.module.argument(call, parameter.name.value).node is argument.value:
                binding = self.module.binding_of(parameter)
                for use in self.module.uses(binding) if binding is not None else ():
                    self._follow(use)
                return binding is not None
        return False

    def _returned(self, node: cst.Return) -> bool:
        function = self.module.function(node)
        if not isinstance(function, cst.FunctionDef):
            return False
        if self.tree.contains(function, self.region) and function is not self.region:
            # It leaves the loop with it.
            self.uses += 1
            return True
        uses: list[cst.BaseExpression] = [*self.module.callers(function)]
        if any(self.module.qualified(each.decorator) == "builtins.property" for each in function.decorators):
            owner = self.module.home(function).classes.owner(function)
            uses = [] if owner is None else [*self._reads(owner, function.name.value)]
        elif function.name.value in _TEXTS:
            self.uses += 1
            return True
        for use in uses:
            if self._inside(use):
                self._follow(use)
            else:
                self.uses += 1
        return bool(uses)
