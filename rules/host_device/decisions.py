"""What depends on a decision: values alone, which the device could choose between, or what Python does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.semantics import places
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.places import Cause
from torchlint.semantics.remembered import remembered
from torchlint.semantics.repetition import frequency
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, is_target, verdicts
from torchlint.semantics.sources import Through, every, onward, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import only_on_failure, written_arguments
from torchlint.semantics.tensordtypes import NOT_FLOATING
from torchlint.semantics.values import Kind

from .needs import Need, needed_on_host
from .neighbours import beside_staying_wait
from .numbers import gone_through, is_one_of_many
from .remedies import DECIDED_ON_HOST, counter_of, now_and_then
from .stakes import AS_SIZE, BESIDE, DECIDES, in_server, leaves_loop, slight
from .waits import waits_within

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot
    from torchlint.semantics.sources import Path, Source

_ASSERTING = frozenset({"torch._assert", "torch.testing.assert_close"})
_VALUES = frozenset({Kind.TENSOR, Kind.NUMBER, Kind.BATCH})
_INFINITE_NAMES = frozenset(
    f"{package}.{name}" for package in ("math", "numpy", "torch") for name in ("inf", "nan")
)
_INFINITE_TEXTS = frozenset({"inf", "infinity", "nan"})
_INFINITE = frozenset({"isfinite", "isinf", "isnan"})
# What makes another whole number of whole numbers.
_STILL_WHOLE = frozenset({"sum", "float", "double", "half", "to", "type", "type_as", "detach", "clone"})


class Outcome(IdentityEnum):
    """What a decision is for."""

    CHOICE = "one of two values: tensors are assigned, or computed in place, and nothing else is done"
    CHECK = "an error or a message, if what is expected does not hold"
    QUOTIENT = "a quotient by a count, if that is not zero"
    GUARD = "a value that would be infinite, or not a number, in the other case"
    ACTION = "what Python does: it leaves the loop or the function, runs a model, makes lists"


def outcome(module: Module, tensor: cst.BaseExpression) -> Outcome | None:
    """Return what the decision is for that asks ``tensor``; None if its truth is a value of the program."""
    match module.flow.condition(tensor):
        case cst.Assert():
            return Outcome.CHECK
        case cst.While() | cst.CompIf():
            return Outcome.ACTION
        case cst.IfExp(body=body, orelse=orelse) as choice:
            if not (_is_value(module, body) and _is_value(module, orelse)):
                return Outcome.ACTION
            return _choice(module, choice.test, (body, orelse))
        case cst.If() as branch:
            if _only_raises(branch.body) or _only_reports(module, branch):
                return Outcome.CHECK
            if not _only_computes(module, branch):
                return Outcome.ACTION
            arms = (branch.body,) if branch.orelse is None else (branch.body, branch.orelse.body)
            return _choice(module, branch.test, arms)
    parent = module.tree.parent(tensor)
    call = tensor if isinstance(tensor, cst.Call) else parent
    asserts = isinstance(call, cst.Call) and module.qualified(call.func) in _ASSERTING
    return Outcome.CHECK if asserts or _is_only_checked(module, tensor) else None


def _choice(module: Module, test: cst.BaseExpression, arms: tuple[cst.CSTNode, ...]) -> Outcome:
    """Return what a choice of one of two values is for."""
    if not _guards(module, test, arms):
        return Outcome.CHOICE
    return Outcome.GUARD if _count_divided_by(module, test, arms) is None else Outcome.QUOTIENT


def _is_only_checked(module: Module, number: cst.BaseExpression) -> bool:
    """Return whether all that becomes of a number is that a check asks for it:
    ``top = ids.max().item()``, and then ``if top >= size: raise IndexError(top)``.
    """
    return verdicts(module, number, _is_check) == {True}


def _is_check(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use is the condition of a check; nothing of what its error says."""
    if only_on_failure(module, use.node):
        return ()
    match use.kind:
        case UseKind.ASSIGNED:
            return ONWARD
        case UseKind.TESTED if isinstance(use.by, (cst.If, cst.Assert)):
            return isinstance(use.by, cst.Assert) or _only_raises(use.by.body)
        case UseKind.OPERAND | UseKind.COMPARED | UseKind.CHOICE | UseKind.TESTED:
            return Standing(use.by) if isinstance(use.by, cst.BaseExpression) else False
    return False


def slight_decision(module: Module, tensor: cst.BaseExpression, what: Outcome | None, hot: Hot) -> str | None:
    """Return why little is at stake: the host needs the decision, or no simple edit spares it."""
    spared = what in (None, Outcome.CHOICE, Outcome.QUOTIENT) or gone_through(module, tensor) is not None
    # A message is as good every hundred steps. A check that ends the program is there to end it at once.
    branch = module.flow.condition(tensor)
    reports = what is Outcome.GUARD or (isinstance(branch, cst.If) and _only_reports(module, branch))
    trains = hot.reason.cause in (Cause.OPTIMIZER_STEP, Cause.GRADIENTS) and _is_counted(module, tensor, hot)
    why = None if spared else "no simple edit moves the decision to the device"
    if why is None and (begins_with_waits(module, tensor) or _is_beside(module, tensor, hot)):
        why = BESIDE
    elif why is None and _chooses_size(module, tensor):
        why = AS_SIZE
    if why is None or (reports and trains):
        return None
    # What Python does next cannot wait. Only servers are rid of that, at the cost of another design.
    acts = what is Outcome.ACTION and not in_server(module, tensor)
    return DECIDES if acts else slight(module, tensor, why)


def _is_beside(module: Module, tensor: cst.BaseExpression, hot: Hot) -> bool:
    """Return whether a single wait for a decision stands next to one that stays."""
    return not is_one_of_many(module, tensor) and beside_staying_wait(module, tensor, hot)


def instead(module: Module, tensor: cst.BaseExpression, hot: Hot) -> str | None:
    """Return what to do with a decision, by what depends on it; None where nothing is decided."""
    counted = _is_counted(module, tensor, hot)
    decision = module.flow.condition(tensor)
    match outcome(module, tensor):
        case Outcome.CHECK if counted:
            return f"Check it only every 100 steps, {now_and_then(module, hot)}"
        case Outcome.CHECK:
            return "Move the check off the hot path, or check on the device with `torch._assert_async(…)`"
        case Outcome.GUARD:
            return "Keep both values finite, for example with `.clamp(…)`, and select with `torch.where(…)`"
        case Outcome.QUOTIENT:
            divisor = _divisor_of(module, decision)
            return (
                f"Divide by `{divisor}.clamp(min=1)`, and select with `torch.where(…)` if the values differ"
            )
        case Outcome.CHOICE:
            return "Select on the device with `torch.where(…)`"
        case Outcome.ACTION if isinstance(decision, cst.While):
            return "Run a fixed number of iterations, or test the condition only in some of them"
        case Outcome.ACTION if isinstance(decision, cst.CompIf):
            return "Test all elements at once on the device, and copy the results to the host before the loop"
        case Outcome.ACTION if counted and _ends_generation(module, tensor):
            return "Test it only every few tokens, and then cut off what follows the end"
        case Outcome.ACTION if counted and not (_skips_round(module, tensor) or _has_alternative(decision)):
            return f"Decide only every 100 steps: `{counter_of(module, hot)} % 100 == 0 and …`"
        case Outcome.ACTION:
            return DECIDED_ON_HOST
    return None


def _chooses_size(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether it is ``n if n > 0 else x.shape[1]`` as a size:
    whether the host needs what is chosen at once.
    """
    choice = module.flow.condition(tensor)
    return isinstance(choice, cst.IfExp) and needed_on_host(module, choice) is Need.SIZE


def _has_alternative(decision: cst.CSTNode | None) -> bool:
    """Return whether each round goes one of two ways: ``if token == wanted: … else: …``."""
    return isinstance(decision, cst.If) and decision.orelse is not None


def _skips_round(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether the rest of the round is left out,
    which cannot wait: ``if torch.isnan(loss): continue``.

    Nor can the choice of what the round goes on with: ``if t > limit: model = first``.
    """
    branch = module.flow.condition(tensor)
    return isinstance(branch, cst.If) and _steers_round(module, branch)


@remembered
def _steers_round(module: Module, branch: cst.If) -> bool:
    """Return whether a branch leaves out the rest of a round, or binds a name that is read behind it."""
    order, parts = module.tree.order, list(module.tree.descendants(branch))
    if any(isinstance(part, cst.Continue) for part in parts):
        return True
    targets = (part.target for part in parts if isinstance(part, cst.AssignTarget))
    chosen = {target.value for target in targets if isinstance(target, cst.Name)}
    end = max(order[part] for part in parts)
    return any(order[read] > end for read in _reads(module, chosen, module.function(branch)))


def _reads(module: Module, names: set[str], function: Function | None) -> Iterator[cst.Name]:
    """Return where variables of these names are read in a function, or in none."""
    return (
        name
        for name in module.tree.nodes(cst.Name)
        if name.value in names and module.function(name) is function and not is_target(module, name)
    )


def begins_with_waits(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether the branch begins with a wait of its own: ``if mask.any(): loss = f(x[mask])``.

    ``if mask.any(): x[mask] = -x[mask]`` does so for the decision alone, which `torch.where` makes as well.
    """
    branch = module.flow.condition(tensor)
    if not isinstance(branch, cst.If) or not isinstance(branch.body, cst.IndentedBlock):
        return False
    return waits_within(module, branch.body.body[0]) and not _assigns_by_mask(module, branch)


def _assigns_by_mask(module: Module, branch: cst.If) -> bool:
    """Return whether all that a branch does is to assign where the mask holds that it asks about."""
    asked = {module.source(part) for part in module.tree.descendants(branch.test)}
    for line in branch.body.body:
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as target)])]
            ) if any(module.source(element.slice) in asked for element in target.slice):
                pass
            case _:
                return False
    return True


def _only_raises(block: cst.BaseSuite) -> bool:
    if isinstance(block, cst.SimpleStatementSuite):
        return isinstance(block.body[-1], cst.Raise)
    return all(
        isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[-1], cst.Raise)
        for line in block.body
    )


def _only_reports(module: Module, branch: cst.If) -> bool:
    """Return whether all that a branch does is to print or log something."""
    return branch.orelse is None and all(
        isinstance(line, cst.SimpleStatementLine)
        and all(isinstance(part, cst.Expr) and _reports(module, part.value) for part in line.body)
        for line in branch.body.body
    )


def _reports(module: Module, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and any(written_arguments(module, node))


@remembered
def _only_computes(module: Module, node: cst.If | cst.Else) -> bool:
    """Return whether a branch, and what is done otherwise, only computes tensors or numbers,
    without a model.
    """
    otherwise = node.orelse if isinstance(node, cst.If) else None
    if otherwise is not None and not _only_computes(module, otherwise):
        return False
    if places.computes(module, node.body):
        return False
    for line in node.body.body:
        if isinstance(line, cst.If):
            if not _only_computes(module, line):
                return False
            continue
        small = line.body if isinstance(line, cst.SimpleStatementLine) else (line,)
        if not all(_computes(module, part) for part in small):
            return False
    return True


def _computes(module: Module, statement: cst.CSTNode) -> bool:
    match statement:
        case cst.Pass() | cst.Expr(value=cst.SimpleString()):
            return True
        case cst.Assign(targets=targets, value=value):
            held = any(_is_state(each.target) or _is_called(module, each.target) for each in targets)
            return not held and _is_value(module, value)
        case cst.AugAssign(target=target, value=value):
            return not _is_state(target) and _is_value(module, value)
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)))):
            return name.endswith("_") and module.value(owner).tensorlike
    return False


def _is_called(module: Module, target: cst.BaseExpression) -> bool:
    """Return whether a function or model is assigned to a variable, as its calls show."""
    return isinstance(target, cst.Name) and any(
        module.tree.is_called(read) for read in _reads(module, {target.value}, module.function(target))
    )


def _is_state(target: cst.BaseExpression) -> bool:
    """Return whether something is assigned to an attribute of ``self``,
    which is there in the next step too.
    """
    return (
        isinstance(target, cst.Attribute)
        and isinstance(target.value, cst.Name)
        and target.value.value == "self"
    )


def _is_value(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a tensor or a number that may be computed in any case,
    of unchanged shape.
    """
    if isinstance(node, cst.Tuple):
        return all(_is_value(module, element.value) for element in node.elements)
    if isinstance(node, cst.Subscript) and any(isinstance(each.slice, cst.Slice) for each in node.slice):
        return False
    kind = module.value(node).kind
    if kind is Kind.UNKNOWN:
        return not any(isinstance(part, cst.Call) for part in module.tree.descendants(node))
    return kind in _VALUES and not places.computes(module, node)


def _guards(module: Module, test: cst.BaseExpression, arms: tuple[cst.CSTNode, ...]) -> bool:
    """Return whether a test keeps what is infinite from the gradients: a quotient by what is tested,
    an overflow.

    ``torch.where`` computes both arms, and the gradient of the one that is not chosen is 0 times infinity.
    """
    if grad(module, test) is Grad.OFF:
        return False
    if any(_is_infinite(module, part) for part in module.tree.descendants(test)):
        return True
    return any(_asked_divisors(module, test, arms))


def _asked_divisors(
    module: Module, test: cst.BaseExpression, arms: tuple[cst.CSTNode, ...]
) -> Iterator[cst.BaseExpression]:
    """Yield what is divided by, of all that a test asks about."""
    parts = module.tree.descendants(test)
    asked = {module.source(part) for part in parts if isinstance(part, cst.BaseExpression)}
    for arm in arms:
        for part in module.tree.descendants(arm):
            divisor = _divisor(part)
            if divisor is not None and module.source(divisor) in asked:
                yield divisor


def _count_divided_by(
    module: Module, test: cst.BaseExpression, arms: tuple[cst.CSTNode, ...]
) -> cst.BaseExpression | None:
    """Return the count that is divided by if it is not zero: ``x / n if n > 0 else x``."""
    if isinstance(test, cst.Comparison):
        match test.comparisons:
            case [cst.ComparisonTarget(comparator=cst.Integer(value="0" | "1"))]:
                test = test.left
            case _:
                return None
    divisors = list(_asked_divisors(module, test, arms))
    alike = {module.source(divisor) for divisor in divisors} == {module.source(test)}
    return divisors[0] if alike and isinstance(test, cst.Name) and every(_is_count(module, test)) else None


def _divisor_of(module: Module, decision: cst.CSTNode | None) -> str:
    assert isinstance(decision, (cst.If, cst.IfExp))
    test = decision.test
    return module.source(test.left if isinstance(test, cst.Comparison) else test)


@traced(Through.NOTHING)
def _is_count(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a tensor holds a whole number: ``(y > 0).sum()``, ``mask.float().sum()``."""
    if path:
        return None
    if module.value(node).dtype in NOT_FLOATING:
        return True
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(name))) if name in _STILL_WHOLE:
            return onward(inner)
    return None


def _divisor(node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return ``n`` in ``x / n`` and ``x /= n``."""
    match node:
        case cst.BinaryOperation(operator=cst.Divide(), right=divisor):
            return divisor
        case cst.AugAssign(operator=cst.DivideAssign(), value=divisor):
            return divisor
    return None


def _is_infinite(module: Module, node: cst.CSTNode) -> bool:
    """Return whether it is ``float("inf")``, ``math.inf``, ``torch.isnan(x)``."""
    match node:
        case cst.Call(func=func) if last_name(func) in _INFINITE:
            return True
        case cst.Call(func=cst.Name(value="float"), args=[cst.Arg(value=cst.SimpleString() as text)]):
            return text.raw_value.strip("+-").lower() in _INFINITE_TEXTS
        case cst.Attribute():
            return module.qualified(node) in _INFINITE_NAMES
    return False


def _is_counted(module: Module, node: cst.CSTNode, hot: Hot) -> bool:
    """Return whether the innermost loop around a place is the hot one, whose rounds can be counted there.

    All entries of a dict belong to one round.
    """
    rounds = (loop for loop in module.flow.loops(node) if not places.over_entries(loop))
    return next(rounds, None) is hot.loop


def _ends_generation(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether a decision leaves a loop that generates tokens,
    which would go on behind the last one.
    """
    return frequency(module, tensor) is Frequency.TOKEN and leaves_loop(module, tensor)
