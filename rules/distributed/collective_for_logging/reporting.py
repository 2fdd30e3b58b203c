"""Whether a value is computed to be looked at by people, and by nothing else, while a loop runs.

What is printed, logged, drawn, put into a meter or added to a running total could as well be computed every
hundredth step, or once after the loop. What a condition asks for, what gradients flow back through, and what
leaves the file could not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.names import BindingKind
from torchlint.semantics.sinks import ONWARD, Onward, Standing, Use, UseKind, Verdict, is_target, sinks
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
_EMPTYING = frozenset({"reset", "zero_", "clear"})
_STEPPING = (Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER)
# Uses that only pass a value along.
_FOLLOWED = frozenset(
    {UseKind.ITEM, UseKind.OPERAND, UseKind.ELEMENT, UseKind.FORMATTED, UseKind.ITERATED, UseKind.ASSIGNED}
    | {UseKind.UNPACKED, UseKind.AUGMENTED, UseKind.DISCARDED}
)
_STOPPING = (Role.STOPPING, Role.BEST, Role.SCHEDULER, Role.SCALER, Role.OPTIMIZER, Role.COPY)


def reported_only(module: Module, values: Sequence[cst.BaseExpression], region: cst.CSTNode) -> bool:
    """Return whether values are used within ``region`` to report them only,
    and are reported or collected at all.

    ``region`` is the loop in whose iterations they are computed. Behind the loop anything may become of them.
    """
    judge = _Reported(region)
    facts = [fact for value in values for fact in sinks(module, value, judge)]
    return bool(facts) and all(facts)


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


@dataclass(frozen=True, slots=True)
class _Reported:
    """Says of a use whether it reports a value or takes it out of the region (True), or not (False)."""

    region: cst.CSTNode

    def __call__(self, module: Module, use: Use) -> Verdict[bool]:
        if not self._inside(module, use.node):
            # Behind the loop anything may become of it.
            return True
        match use.kind:
            case UseKind.ATTRIBUTE if use.name in ("shape", "dtype", "device", "ndim"):
                return ()
            case UseKind.ATTRIBUTE:
                return ONWARD if use.name in ("data", "T", "real", "value") else False
            case UseKind.METHOD if use.name in _SAME:
                return Standing(use.call)
            case UseKind.METHOD:
                # ``losses.update(…)``, ``total.append(…)``: what is collected, not what is read.
                return () if use.name in _METER_METHODS | _EMPTYING else False
            case UseKind.SET:
                return () if isinstance(use.by, cst.Subscript) else False
            case UseKind.ARGUMENT:
                return self._given(module, use)
            case UseKind.STORED:
                return (True, *_facts(self._kept(module, use.by)))
            case UseKind.AUGMENTS if isinstance(use.by, cst.AugAssign):
                return (True, *_facts(self._kept(module, use.by.target)))
            case UseKind.RETURNED:
                return self._returned(module, use)
            case UseKind.OTHER if isinstance(use.by, (cst.Dict, cst.DictComp, cst.ConcatenatedString)):
                return Standing(use.by)
            case UseKind.OTHER if isinstance(use.by, cst.Del):
                return ()
            case UseKind.ELSEWHERE:
                return False if isinstance(use.part, cst.Arg) else ()
        return ONWARD if use.kind in _FOLLOWED else False

    def _inside(self, module: Module, node: cst.CSTNode) -> bool:
        """Return whether a node runs in the iterations: in the region,
        or in a function that the region calls.
        """
        return module.tree.contains(self.region, node) or (
            module.function(node) is not module.function(self.region)
        )

    def _given(self, module: Module, use: Use) -> Verdict[bool]:
        """Return what becomes of a value that a call is given."""
        call, star = use.call, use.argument.star
        if star == "*":
            return False
        taken = self._taken(module, call)
        if star or taken is not False:
            # What a call that reports hands back may be the value itself.
            dropped = star or isinstance(module.tree.parent(call), cst.Expr)
            return (True, *_facts(taken), *(() if dropped else (Standing(call),)))
        name, dotted = last_name(call.func) or "", module.qualified(call.func)
        if dotted is not None and name in _PASSING:
            return Standing(call)
        if dotted is not None and dotted.startswith("torch.distributed."):
            # It is exchanged, that is, changed in place; what reads it afterwards is found by its name.
            return ()
        if isinstance(call.func, cst.Attribute) and name in _SAME and not name.endswith("_"):
            return Standing(call)
        return ONWARD if isinstance(module.callee(call), cst.FunctionDef) else False

    def _taken(self, module: Module, call: cst.Call) -> Verdict[bool]:
        """Return what comes of what a call reports or collects; False if it does neither."""
        name = last_name(call.func) or ""
        dotted = module.qualified(call.func)
        computes = dotted is not None and dotted != "builtins.print" and dotted.startswith(_COMPUTING)
        if _writes(name) and not computes:
            return ()
        if not isinstance(call.func, cst.Attribute):
            return False
        owner = call.func.value
        if is_logger(module, owner):
            return ()
        word = last_name(owner) or ""
        if name not in _METER_METHODS or has(word, *_STOPPING) or module.value(owner).kind in _STEPPING:
            return False
        if name in ("append", "extend") and isinstance(owner, cst.Attribute):
            return self._kept_in_attribute(module, owner)
        made = module.value(owner).definition
        of_class = made.name.value if isinstance(made, cst.ClassDef) else ""
        if not (has(word, *_METER) or "Meter" in of_class or "Metric" in of_class):
            return False
        return _all_of(module, owner) if name in ("append", "extend") and isinstance(owner, cst.Name) else ()

    def _kept(self, module: Module, target: cst.CSTNode) -> Verdict[bool]:
        """Return what comes of what is stored in a target, or added to it."""
        match target:
            case cst.Name():
                return ONWARD
            case cst.Subscript(value=cst.Name() as holder):
                return _all_of(module, holder) if _is_record(module, holder) else False
            case cst.Subscript(value=cst.Attribute() as holder):
                return () if has(last_name(holder), *_METER) else False
            case cst.Attribute():
                return self._kept_in_attribute(module, target)
            case _:
                return False

    def _kept_in_attribute(self, module: Module, target: cst.Attribute) -> Verdict[bool]:
        """Return what comes of ``bar.desc = …``, ``self.running_loss += …``: kept for reports,
        as no condition reads it.
        """
        name = target.attr.value
        if name in ("desc", "postfix"):
            return ()
        if has(name, *_METER) and not has(name, *_STOPPING):
            text = module.tree.source(target)
            reads = SelfAttributes.of(module).attribute_reads.get(name, ())
            alike = [read for read in reads if read is not target and module.tree.source(read) == text]
        else:
            # Whatever it is called, all reads of what a method keeps in ``self`` are followed.
            owner = SelfAttributes.of(module.home(target)).self_class(target)
            if owner is None:
                return False
            alike = _reads(module, owner, name)
        inside = (read for read in alike if self._inside(module, read) and not is_target(module, read))
        return tuple(Standing(read) for read in inside)

    def _returned(self, module: Module, use: Use) -> Verdict[bool]:
        """Return what becomes of a value that a function returns."""
        function = module.function(use.by)
        if not isinstance(use.by, cst.Return) or not isinstance(function, cst.FunctionDef):
            return False
        if module.tree.contains(function, self.region) and function is not self.region:
            return True  # it leaves the loop with it
        if any(module.qualified(each.decorator) == "builtins.property" for each in function.decorators):
            owner = module.home(function).classes.owner(function)
            reads: Sequence[cst.BaseExpression] = (
                [] if owner is None else _reads(module, owner, function.name.value)
            )
        elif function.name.value in _TEXTS:
            return True
        else:
            reads = module.callers(function)
        return tuple(Standing(read) for read in reads) or False


def _facts(verdict: Verdict[bool]) -> tuple[bool | Onward | Standing, ...]:
    return verdict if isinstance(verdict, tuple) else (verdict,)


def _all_of(module: Module, holder: cst.Name) -> tuple[Standing, ...]:
    """Return the definitions of a container that a value is put into."""
    return tuple(Standing(binding) for binding in module.names.bindings_at(holder.value, holder))


def _is_record(module: Module, holder: cst.Name) -> bool:
    """Return whether a variable holds numbers for a report: by its name, or as a dictionary made here."""
    if has(holder.value, *_METER):
        return not has(holder.value, *_STOPPING)
    values = [binding.value for binding in module.names.bindings_at(holder.value, holder)]
    return bool(values) and all(
        isinstance(value, (cst.Dict, cst.List, cst.DictComp))
        or (isinstance(value, cst.Call) and last_name(value.func) in _RECORDS)
        for value in values
    )


def _reads(module: Module, owner: cst.ClassDef, name: str) -> list[cst.Attribute]:
    """Return the reads of an attribute that may be one of the instances of a class,
    in all of its programs.
    """
    home = module.home(owner)
    found = SelfAttributes.of(home).self_reads(owner, name)
    for each in (home, *home.companions(f".{name}")):
        found += SelfAttributes.of(each).foreign_reads(name)
    return found
