"""The gradients that parameters hold (``p.grad``): where they are cleared, read and written by hand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.iterations import gradient_owner, is_parameter_group, visits
from torchlint.semantics.module import Module, Part
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function

_CAPTURES = frozenset(
    {
        "torch.cuda.CUDAGraph",
        "torch.cuda.graph",
        "torch.cuda.make_graphed_callables",
        "torch.cuda.graphs.graph",
        "tensordict.nn.CudaGraphModule",
    }
)
_LISTING = (cst.Arg, cst.AssignTarget, cst.Element, cst.StarredElement)
_STATEMENTS = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
_WRITES = frozenset({"add_", "copy_", "set_", "sub_", "lerp_", "addcmul_", "addcdiv_"})


def zeroed_gradient(module: Module, node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return the owner of the gradient that a call or assignment fills with zeros in place."""
    number: cst.BaseExpression | None = None
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("zero_"), value=gradient), args=[]):
            owner = gradient_owner(gradient)
        case cst.Call(func=cst.Attribute(attr=cst.Name("fill_" | "mul_"), value=gradient), args=[argument]):
            owner, number = gradient_owner(gradient), argument.value
        case cst.Call(args=[argument]) if module.qualified(node.func) == "torch.zero_":
            owner = gradient_owner(argument.value)
        case cst.AugAssign(operator=cst.MultiplyAssign()):
            owner, number = gradient_owner(node.target), node.value
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as target)]):
            whole = all(_everything(element.slice) for element in target.slice)
            owner, number = gradient_owner(target.value) if whole else None, node.value
        case _:
            return None
    # Hardly anything that is filled is a gradient: what it is filled with is asked last.
    zeros = owner is not None and (number is None or module.value(number).constant == 0)
    return owner if zeros else None


def _everything(index: cst.BaseSlice) -> bool:
    match index:
        case cst.Slice(lower=None, upper=None, step=None) | cst.Index(value=cst.Ellipsis()):
            return True
        case _:
            return False


class Gradients(Part):
    """The gradients of one file."""

    # ------------------------------------------------------------------ gradients that must be there

    def needed_at(self, node: cst.CSTNode, owner: cst.BaseExpression | None = None) -> bool:
        """Return whether code relies on finding a tensor if gradients are cleared at ``node``.

        ``owner`` is the parameter whose gradient is cleared; None stands for many.
        """
        return (
            self._captured
            or self._written_by_hand
            or (not Backpropagation.of(self.module).passes and self._written_elsewhere)
            or self._read_before_backward(node, owner, self._reads)
        )

    def tells_none(self, call: cst.Call) -> bool:
        """Return whether the program may tell gradients that ``call`` sets to None from gradients of zeros.

        It asks for them before the next backward, or takes steps behind a backward that did not run, or that
        ran through other models than the last: a step moves what has a gradient of zeros by its momentum.
        """
        kept = any(each._kept for each in (self, *map(Gradients.of, self._others)))
        return kept or self._read_before_backward(call, None, self._asked) or self._uneven(call)

    @cached_property
    def _asked(self) -> list[cst.Attribute]:
        """The places that ask for a gradient, if only for whether there is one."""
        return [read for read in self.tree.attributes_by_name.get("grad", ()) if not self._clears(read)]

    @cached_property
    def _kept(self) -> bool:
        """Whether something other than a parameter holds on to the tensor of a gradient."""
        return any(map(self._is_kept, self._asked)) or any(
            binding.value is not None and some(_is_part(self.module, binding.value))
            for binding in self.module.names.attributes.get("grad", ())
        )

    def _is_kept(self, read: cst.Attribute) -> bool:
        """Return whether a list or an object holds on to the tensor of a gradient,
        which is then filled again.
        """
        whole: cst.CSTNode = read
        parent = self.tree.parent(whole)
        while isinstance(parent, cst.Attribute) and parent.attr.value == "data":
            whole, parent = parent, self.tree.parent(parent)
        match parent:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(name)))]):
                return name not in ("grad", "data")
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
                return self._outlasts_step(name)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())]):
                return True
            case cst.ListComp() | cst.DictComp() | cst.GeneratorExp() | cst.Yield() | cst.Return():
                return True
            case cst.Element():
                return True
            case cst.Arg():
                call = self.tree.parent(parent)
                return (
                    isinstance(call, cst.Call)
                    and isinstance(call.func, cst.Attribute)
                    and call.func.attr.value == "append"
                )
        return False

    def _outlasts_step(self, name: cst.Name) -> bool:
        """Return whether a gradient is read by this name after gradients may have been cleared again."""
        order, flow = self.tree.order, self.module.flow
        binding = self.module.binding_of(name)
        around = set(flow.loops(name))
        cleared = self.tree.calls_by_name.get("zero_grad", ())
        return any(
            not around.issuperset(flow.loops(use))
            or any(order[name] < order[call] < order[use] for call in cleared)
            for use in (self.module.uses(binding) if binding is not None else ())
        )

    def _uneven(self, call: cst.Call) -> bool:
        """Return whether steps of the same function may reach different parameters."""
        branches, chosen = self._unlike(self.module.function(call))
        if chosen or any(not self.tree.contains(branch, call) for branch in branches):
            return True
        return any(self.tree.holds(loop, self._frozen) for loop in self.module.flow.loops(call))

    @cached_property
    def _frozen(self) -> list[cst.CSTNode]:
        """What says which parameters are trained, or calls a function of the file that does."""
        said: list[cst.CSTNode] = [
            attribute
            for attribute in self.tree.nodes(cst.Attribute)
            if (attribute.attr.value == "requires_grad_" and self.tree.is_called(attribute))
            or (
                attribute.attr.value == "requires_grad"
                and isinstance(self.tree.parent(attribute), cst.AssignTarget)
            )
        ]
        helpers = {self.module.function(node) for node in said}
        calls = [c for f in helpers if isinstance(f, cst.FunctionDef) for c in self.module.callers(f)]
        calls = [call for call in calls if not self.tree.is_elsewhere(call)]
        return sorted({*said, *calls}, key=self.tree.order.__getitem__)

    @remembered
    def _unlike(self, function: Function | None) -> tuple[list[cst.If], bool]:
        """Return where a function steps without knowing what for.

        These are the conditions that have a backward in one branch only, and no step in either; and whether
        a model is picked or left out.
        """
        calls = self.module.calls_in(function)
        steps = [c for c in calls if isinstance(c.func, cst.Attribute) and c.func.attr.value == "step"]
        backwards = self._backwards(function)
        found = [self._branch_without(backward, backwards, steps) for backward in backwards]
        branches = list(dict.fromkeys(branch for branch in found if branch is not None))
        return branches, any(map(self._is_chosen, calls)) or self._leaves_out(function, steps)

    def _branch_without(
        self, backward: cst.Call, backwards: Sequence[cst.Call], steps: Sequence[cst.Call]
    ) -> cst.If | None:
        """Return the innermost condition around ``backward`` that has none in its other branch,
        nor a step.
        """
        for branch in self.module.flow.branches(backward, outward=True):
            around = branch.construct
            if self.tree.holds(around, steps):
                return None
            if isinstance(around, cst.If):
                branches = around.body, around.orelse
                if not all(b is not None and self.tree.holds(b, backwards) for b in branches):
                    return around
        return None

    def _leaves_out(self, function: Function | None, steps: Sequence[cst.Call]) -> bool:
        """Return whether some iterations do not use a model or parameter:
        ``if step > 9: loss += head(x)``.
        """
        used: dict[str, list[cst.Name | cst.Attribute]] = {}
        for node in self.tree.nodes(cst.Name, cst.Attribute):
            assert isinstance(node, (cst.Name, cst.Attribute))
            if isinstance(self.tree.parent(node), _LISTING) or self.module.function(node) is not function:
                continue
            value = self.module.value(node)
            if (value.leaf or value.kind is Kind.MODULE) and any(
                self.tree.holds(loop, steps) for loop in self.module.flow.loops(node)
            ):
                used.setdefault(self.module.source(node), []).append(node)
        return any(all(self._at_times(node, uses, steps) for node in uses) for uses in used.values())

    def _at_times(self, node: cst.CSTNode, uses: Sequence[cst.CSTNode], steps: Sequence[cst.Call]) -> bool:
        """Return whether an iteration may run a step, and neither ``node`` nor another of ``uses``."""
        return any(
            isinstance(around := branch.construct, (cst.If, cst.IfExp))
            and not self.tree.holds(around, steps)
            and not (
                around.orelse is not None
                and all(self.tree.holds(b, uses) for b in (around.body, around.orelse))
            )
            for branch in self.module.flow.branches(node)
        )

    def _is_chosen(self, call: cst.Call) -> bool:
        """Return whether a forward pass runs through one of several models: ``heads[task](x)``."""
        if self.module.value(call.func).kind is not Kind.MODULE or not self.module.flow.loops(call):
            return False
        if isinstance(call.func, cst.IfExp):
            return True
        if isinstance(call.func, cst.Subscript):
            index = call.func.slice[0].slice
            return isinstance(index, cst.Index) and self.module.value(index.value).constant is MISSING
        return False

    def taken_for_granted(self, call: cst.Call) -> bool:
        """Return whether code reads a gradient that ``call`` has cleared, and does not ask for None.

        It has no backward of its own, or runs none after it has called what clears.
        """
        taken = any(each._takes_for_granted for each in (self, *map(Gradients.of, self._others)))
        return taken or self._read_by_callers(call)

    def _read_by_callers(self, cleared: cst.Call) -> bool:
        """Return whether a function that leads to ``cleared`` reads a gradient before the next backward."""
        seen, pending = set[cst.CSTNode](), [cleared]
        while pending:
            place = pending.pop()
            home = Gradients.of(self.module.home(place))
            if place is not cleared and home._read_before_backward(place, None, home._reads):
                return True
            function = home.module.function(place)
            following = home._backwards(function)
            order = home.tree.order
            if function is None or function in seen or any(order[place] < order[each] for each in following):
                continue
            seen.add(function)
            pending += home.module.callers(function)
        return False

    @property
    def _others(self) -> Sequence[Module]:
        return self.module.companions(".grad")

    @cached_property
    def _takes_for_granted(self) -> bool:
        functions = {self.module.function(read) for read in self._reads}
        return any(not self._backwards(function) for function in functions)

    @cached_property
    def _captured(self) -> bool:
        """Whether the file captures CUDA graphs, which replay into the memory of the gradients."""
        return any(self.module.qualified(call.func) in _CAPTURES for call in self.tree.nodes(cst.Call))

    @cached_property
    def _written_by_hand(self) -> bool:
        """Whether something is added or copied to a gradient that must exist for it."""
        return any(
            self._unguarded(read) and self._is_written(read)
            for read in self.tree.nodes(cst.Attribute)
            if read.attr.value == "grad"
        )

    @cached_property
    def _written_elsewhere(self) -> bool:
        """Whether another file of the program computes gradients by hand, and writes them where zeros are."""
        return any(each._written_by_hand for each in map(Gradients.of, self._others))

    def _is_written(self, read: cst.Attribute) -> bool:
        whole: cst.CSTNode = read
        parent = self.tree.parent(whole)
        while isinstance(parent, cst.Attribute) and parent.attr.value == "data":
            whole, parent = parent, self.tree.parent(parent)
        if isinstance(parent, cst.AugAssign) and parent.target is whole:
            return isinstance(parent.operator, (cst.AddAssign, cst.SubtractAssign))
        return isinstance(parent, cst.Attribute) and parent.attr.value in _WRITES

    @cached_property
    def _reads(self) -> list[cst.Attribute]:
        """The places that take a gradient for granted: neither clear it, set it nor ask for None."""
        return [read for read in self._asked if self._unguarded(read)]

    def _clears(self, read: cst.Attribute) -> bool:
        for around in self.tree.ancestors(read):
            if isinstance(around, (cst.Call, cst.Assign, cst.AugAssign)):
                if zeroed_gradient(self.module, around) is not None:
                    return True
                match around:
                    case cst.Call(func=cst.Attribute(attr=cst.Name("detach_"))):
                        return True
                    case cst.Assign(targets=[cst.AssignTarget(target=target)]) if target is read:
                        return True
                    case _:
                        pass
            if isinstance(around, cst.BaseSmallStatement):
                return False
        return False

    def _unguarded(self, read: cst.Attribute) -> bool:
        """Return whether nothing that leads to a read asks first whether the gradient is None."""
        text = self.module.tree.source(read)
        if isinstance(self.tree.parent(read), cst.Comparison):
            return False
        return not any(self._asks(decision.test, text) for decision in self.module.flow.decisions(read))

    def _asks(self, test: cst.BaseExpression, text: str) -> bool:
        return any(
            isinstance(node, cst.Attribute)
            and node.attr.value == "grad"
            and self.module.tree.source(node) == text
            for node in self.tree.descendants(test)
        )

    def _read_before_backward(
        self, node: cst.CSTNode, owner: cst.BaseExpression | None, places: list[cst.Attribute]
    ) -> bool:
        """Return whether a gradient cleared at ``node`` is read at one of ``places`` before the next
        backward.
        """
        function = self.module.function(node)
        order = self.tree.order
        here = order[node]
        reads = [
            order[read]
            for read in places
            if self.module.function(read) is function and self._may_be_same(read.value, owner)
        ]
        if not reads:
            return False
        backwards = self._backwards(function)
        behind = bisect_right(backwards, here, key=order.__getitem__)
        following = order[backwards[behind]] if behind < len(backwards) else None
        if any(here < read and (following is None or read < following) for read in reads):
            return True
        if following is not None:
            return False
        for loop in self.module.flow.loops(node):
            inside = self.tree.within(loop, backwards)
            if inside:
                # The loop comes round: what stands above the backward sees the cleared gradient.
                return any(order[loop] < read < order[inside[0]] for read in reads)
        return False

    def _may_be_same(self, one: cst.BaseExpression, other: cst.BaseExpression | None) -> bool:
        """Return whether two expressions may be the same parameter: spelt alike,
        or one of those a loop visits.
        """
        if other is None or self.module.tree.source(one) == self.module.tree.source(other):
            return True
        return bool(visits(self.module, one) or visits(self.module, other))

    def _backwards(self, function: cst.CSTNode | None) -> list[cst.Call]:
        """Return the calls in a function that compute gradients,
        themselves or in what they call in the file.
        """
        return self._computing.get(function, [])

    @cached_property
    def _computing(self) -> dict[cst.CSTNode | None, list[cst.Call]]:
        """The calls that compute gradients, by function."""
        found: dict[cst.CSTNode | None, list[cst.Call]] = {}
        passes = Backpropagation.of(self.module).calls
        for call in self.tree.nodes(cst.Call):
            if call in passes or self._steps_inside(call):
                found.setdefault(self.module.function(call), []).append(call)
        return found

    def _steps_inside(self, call: cst.Call) -> bool:
        callee = self.module.callee(call)
        return callee is not None and Backpropagation.of(self.module).steps(callee.body)

    # ------------------------------------------------------------------ loops that only clear

    def clearing_loop(self, node: cst.CSTNode) -> tuple[cst.For, cst.BaseExpression] | None:
        """Return the loop that does nothing but clear all parameters at ``node``, and the owner of them all.

        None where the loop does more, visits only some, carries a comment, or is itself the owner's
        ``zero_grad``.
        """
        loop = self._only_in(self.tree.parent(node) if isinstance(node, cst.Call) else node)
        if loop is None:
            return None
        owner = self._all_parameters_of(loop.iter)
        if owner is None and is_parameter_group(loop.iter):
            outer = self._only_in(loop)
            match outer:
                case cst.For(iter=cst.Attribute(attr=cst.Name("param_groups"), value=optimizer)):
                    loop, owner = outer, optimizer
                case _:
                    return None
        if owner is None or "#" in self.tree.source(loop):
            return None
        function = self.module.function(node)
        if isinstance(function, cst.FunctionDef) and function.name.value == "zero_grad":
            return None
        definition = self.module.value(owner).definition
        if isinstance(definition, cst.ClassDef) and self.module.classes.info(definition).method("zero_grad"):
            return None
        return loop, owner

    def _only_in(self, statement: cst.CSTNode | None) -> cst.For | None:
        """Return the loop whose body is this statement alone, but for guards and a ``detach_()``."""
        if not isinstance(statement, _STATEMENTS):
            return None
        loop = next(iter(self.module.flow.statement_loops(statement)), None)
        if not isinstance(loop, cst.For) or loop.orelse is not None or loop.asynchronous is not None:
            return None
        guards = [branch.construct for branch in self.module.flow.branches(statement, within=loop)]
        if not all(isinstance(g, cst.If) and g.orelse is None and self._is_guard(g.test) for g in guards):
            return None
        others = (node for node in self.tree.descendants(loop.body) if isinstance(node, _STATEMENTS))
        rest = (o for o in others if o not in guards and not self.tree.contains(statement, o))
        return loop if all(map(self._is_detach, rest)) else None

    def _is_detach(self, statement: cst.CSTNode) -> bool:
        match statement:
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name("detach_"), value=gradient))):
                return gradient_owner(gradient) is not None
            case _:
                return False

    def _is_guard(self, test: cst.BaseExpression) -> bool:
        """Return whether it is ``p.grad is not None``, ``p.requires_grad``:
        no parameter with a gradient is left out.
        """
        match test:
            case cst.Comparison(
                left=left,
                comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
            ):
                return gradient_owner(left) is not None
            case cst.BooleanOperation(operator=cst.And()):
                return self._is_guard(test.left) and self._is_guard(test.right)
            case cst.Attribute(attr=cst.Name("requires_grad" | "grad")):
                return True
            case _:
                return False

    def _all_parameters_of(self, iterable: cst.BaseExpression) -> cst.BaseExpression | None:
        match iterable:
            case cst.Call(
                func=cst.Attribute(attr=cst.Name("parameters" | "named_parameters"), value=owner), args=[]
            ) if self.module.value(owner).kind is Kind.MODULE:
                return owner
            case _:
                return None


@traced(Through.NOTHING)
def _is_part(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether what is made a gradient is a view of something else,
    such as a buffer for all gradients.
    """
    match node:
        case cst.Subscript(value=owner):
            return module.value(owner).kind in (Kind.TENSOR, Kind.UNKNOWN)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("view" | "view_as" | "reshape"))):
            return onward(owner)
        case _:
            return None
