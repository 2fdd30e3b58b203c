"""What becomes of a value: the calls it is handed to, and whether they would notice a tensor in its place.

``handed_to`` asks the calls that get an expression, through names, indexing, loops over it and
the callers of a function that returns it. ``tensor_instead_of_number`` judges a change: a running total or
a list that held Python numbers is to hold tensors of one element on the device.
"""

from __future__ import annotations

import enum
import itertools
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.families import DRAWING_LIBRARIES, HOST_ALGORITHMS, HOST_PACKAGES, WRITERS
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.names import Binding, BindingKind, Scope, ScopeKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Onward, Standing, Use, UseKind, Verdict, sinks, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot


# --- receivers --------------------------------------------------------------------------------------


def handed_to(module: Module, node: cst.BaseExpression, asked: Callable[[Module, cst.Call], bool]) -> bool:
    """Whether ``asked`` holds of a call to which the value of ``node`` is handed each time it is computed."""
    return True in verdicts(module, node, _HandedTo(asked))


def receivers(module: Module, node: cst.BaseExpression) -> Iterator[cst.Call]:
    """The calls that get the value of ``node``, also once a loop has collected it, nearest first."""
    return sinks(module, node, _received)


@dataclass(frozen=True, slots=True)
class _HandedTo:
    """Whether a question is answered yes by a call that gets a value in the same iteration."""

    asked: Callable[[Module, cst.Call], bool]

    def __call__(self, module: Module, use: Use) -> Verdict[bool]:
        onward = _onward(module, use, collected=False)
        return (self.asked(module, use.call), *onward) if use.kind is UseKind.ARGUMENT else onward


def _received(module: Module, use: Use) -> Verdict[cst.Call]:
    """A call that gets a value, also once a loop has collected it."""
    onward = _onward(module, use, collected=True)
    return (use.call, *onward) if use.kind is UseKind.ARGUMENT else onward


def _onward(module: Module, use: Use, *, collected: bool) -> tuple[Onward | Standing, ...]:
    """Where a value goes on, or what is computed from it."""
    match use.kind:
        case UseKind.ARGUMENT:
            entered = (ONWARD,) if _takes_in(module, use.call) else ()
            updated = _reads_of_updated(module, use.call) if collected else ()
            return (Standing(use.call), *entered, *updated)
        case UseKind.ASSIGNED | UseKind.AUGMENTS | UseKind.AUGMENTED:
            target = use.by.target if isinstance(use.by, cst.AugAssign) else use.by
            binding = module.binding_of(target)
            return _reads_of(module, target, [binding] if binding is not None else [], collected)
        case UseKind.STORED:
            if isinstance(use.by, cst.Subscript) and isinstance(use.by.value, cst.Name):
                # What goes into a dictionary or an array is handed on with it.
                bindings = module.names.bindings_at(use.by.value.value, use.by.value)
                return _reads_of(module, use.by, bindings, collected)
            return (ONWARD,) if collected and isinstance(use.by, cst.Attribute) else ()
        case UseKind.UNPACKED | UseKind.ITERATED | UseKind.RETURNED | UseKind.YIELDED | UseKind.FORMATTED:
            return (ONWARD,)
    return (Standing(use.by),) if isinstance(use.by, cst.BaseExpression) and use.kind in COMPUTING else ()


def _takes_in(module: Module, call: cst.Call) -> bool:
    """Whether a value goes on inside of what takes it: a function, or a list that is made in each round."""
    if isinstance(module.callee(call), cst.FunctionDef):
        return True
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value in FILLING
        and isinstance(func.value, cst.Name)
        and filled_here(module, func.value)
    )


FILLING = frozenset({"append", "extend", "insert"})
"""The methods by which a list takes a value in."""


def filled_here(module: Module, owner: cst.BaseExpression) -> bool:
    """Whether a list is made anew in each round of the hot loop, which is done with it at its end."""
    bindings = module.bindings(owner) if isinstance(owner, cst.Name) else []
    around = [loop for loop in module.flow.loops(owner) if places.heat(module, loop) is places.Heat.HOT]
    return bool(bindings) and all(
        binding.kind is BindingKind.ASSIGN and (not around or module.tree.contains(around[0], binding.node))
        for binding in bindings
    )


COMPUTING = frozenset(
    {UseKind.METHOD, UseKind.CALLED, UseKind.ATTRIBUTE, UseKind.ITEM, UseKind.INDEX, UseKind.ELEMENT}
    | {UseKind.OPERAND, UseKind.COMPARED, UseKind.CHOICE, UseKind.TESTED, UseKind.AWAITED, UseKind.OTHER}
)
"""Uses whose result stands for the value that it is computed from."""


def _reads_of(
    module: Module, target: cst.CSTNode, bindings: Iterable[Binding], collected: bool
) -> tuple[Standing, ...]:
    """The later reads of what is assigned, in the same iteration of the loop around it if not all."""
    loops = () if collected else module.flow.loops(target)
    hot = (loop for loop in loops if places.heat(module, loop) is places.Heat.HOT)
    loop = next(hot, next(iter(loops), None))
    reads = (module.uses(binding) for binding in bindings)
    return tuple(
        Standing(read)
        for found in reads
        for read in (found if loop is None else module.tree.within(loop, found))
        if _may_follow(module, target, read)
    )


def reads_in_iteration(module: Module, target: cst.CSTNode) -> tuple[Standing, ...]:
    """Where the variable ``target``, just assigned, is read in the same iteration of the hot loop around."""
    binding = module.binding_of(target)
    if binding is None:
        return ()
    loops = module.flow.loops(target)
    loop = next((loop for loop in loops if places.heat(module, loop) is places.Heat.HOT), None)
    reads = module.uses(binding) if loop is None else module.tree.within(loop, module.uses(binding))
    return tuple(Standing(read) for read in reads if _may_follow(module, target, read))


def _may_follow(module: Module, store: cst.CSTNode, read: cst.CSTNode) -> bool:
    """Whether a read may see a store: below it, in a loop around both, or in another function."""
    tree = module.tree
    if tree.is_elsewhere(read) or tree.order[store] < tree.order[read]:
        return True
    if module.function(store) is not module.function(read):
        return True
    return any(tree.contains(loop, read) for loop in module.flow.loops(store)[-1:])


def _reads_of_updated(module: Module, call: cst.Call) -> tuple[Standing, ...]:
    """The reads of the dictionary that ``own.update(…)`` puts its argument into."""
    match call.func:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name("update")):
            return tuple(Standing(binding) for binding in module.bindings(owner))
    return ()


def _environment(name: str | None) -> bool:
    """Whether something of this name is a simulation in which an agent acts."""
    return has(name, Role.ENVIRONMENT) or ends(name, Role.WORLD)


def steps_environment(module: Module, call: cst.Call) -> bool:
    """Whether ``call`` hands an action, or something to show, to an environment: ``env.step(…)``."""
    if not isinstance(call.func, cst.Attribute):
        return False
    owner = call.func.value
    if module.value(owner).kind in (Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER, Kind.MODULE):
        return False
    name = owner.attr.value if isinstance(owner, cst.Attribute) else getattr(owner, "value", "")
    if not isinstance(name, str):
        return False
    if call.func.attr.value in ("step", "step_async", "act") and _environment(name):
        return True
    return ends(name, Role.ENVIRONMENT)


_ENGINES = frozenset(
    {"run", "infer", "inference", "setInput", "set_input", "set_tensor", "copy_from_cpu"}
    | {"predict", "predict_proba", "fit", "partial_fit"}
    | {"decode", "batch_decode", "decode_batch", "detokenize", "ids_to_tokens", "convert_ids_to_tokens"}
)
# Libraries whose algorithms have no counterpart on the device.
_HOST_LIBRARIES = frozenset(
    {"scipy", "sklearn", "skimage", "cv2", "PIL", "librosa", "soundfile", "faiss", "numba", "networkx"}
    | {"onnxruntime", "pycocotools", "editdistance", "jiwer", "nltk", "rouge_score", "sacrebleu", "lap"}
    | {"pyworld", "pesq", "pystoi", "mir_eval", "museval", "parselmouth", "resampy", "kaldiio"}
    | {"trimesh", "open3d", "shapely", "pandas", "h5py", "umap", "hdbscan", "SimpleITK", "nibabel"}
    | {"Bio", "ase", "mdtraj", "openmm", "pymatgen", "rdkit"}
    # Lattices take the lengths of the utterances from the host.
    | {"k2"}
)
# What scores predictions, and functions of single numbers, exist for tensors as well.
_ON_DEVICE_TOO = ("sklearn.metrics", "scipy.special")
WRITING = (Role.SAVING, Role.DRAWING, Role.EXPORT)


def writes_out(module: Module, call: cst.Call) -> bool:
    """Whether ``call`` saves, plots or writes what it is given."""
    name = last_name(call.func) or ""
    if name == "scatter":
        return _draws_points(module, call)
    return name in WRITERS or begins(name, *WRITING) or _writes_to_resource(module, call)


def _draws_points(module: Module, call: cst.Call) -> bool:
    """``plt.scatter(x, y)``, ``ax.scatter(x, y)``, but not ``torch_scatter.scatter`` and ``x.scatter(…)``."""
    qualified = module.qualified(call.func)
    if qualified is not None:
        return qualified.partition(".")[0] in DRAWING_LIBRARIES
    return isinstance(call.func, cst.Attribute) and not module.value(call.func.value).tensorlike


def _writes_to_resource(module: Module, call: cst.Call) -> bool:
    """``out = ArrayFile("x.npy")``, ``out.append(x)``: what is opened by a path, or entered, is no list."""
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.Name):
        return False
    if call.func.attr.value not in ("append", "add", "add_item", "put", "push", "store", "extend"):
        return False
    if ends(call.func.value.value, Role.FILE) and not module.value(call.func.value).known:
        return True
    bindings = module.bindings(call.func.value)
    return bool(bindings) and all(
        binding.value is not None
        and not module.value(binding.value).known
        and (binding.kind is BindingKind.WITH or _opened(module, binding.value))
        for binding in bindings
    )


def _opened(module: Module, node: cst.BaseExpression) -> bool:
    """Whether a class of a library is made of text."""
    if not isinstance(node, cst.Call) or not node.args or module.qualified(node.func) is None:
        return False
    return (last_name(node.func) or "")[:1].isupper() and _is_path(module, node.args[0].value)


def _is_path(module: Module, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _is_path(module, node.left) or _is_path(module, node.right)
    if isinstance(node, cst.Call) and last_name(node.func) in ("join", "Path"):
        return True
    return module.value(node).kind is Kind.STRING


def stored_by_writer(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the statement of ``node`` puts it into a file behind a mapping: ``writer[key] = x``."""
    statement = module.tree.statement(node)
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for part in statement.body:
        if isinstance(part, cst.Assign):
            for target in part.targets:
                if isinstance(target.target, cst.Subscript) and isinstance(target.target.value, cst.Name):
                    if ends(target.target.value.value, Role.FILE):
                        return True
    return False


def feeds_host_engine(module: Module, call: cst.Call) -> bool:
    """Whether ``call`` hands its input to something other than torch that computes on the host.

    An inference engine's session, an estimator of scikit-learn, an algorithm of SciPy, what makes text of
    numbers, or numbers of sounds and pictures.
    """
    qualified = module.qualified(call.func)
    if last_name(call.func) in HOST_ALGORITHMS:
        return True
    if qualified is not None:
        return qualified.partition(".")[0] in _HOST_LIBRARIES and not qualified.startswith(_ON_DEVICE_TOO)
    if module.value(call.func).kind is Kind.MODULE:
        return False
    if ends(last_name(call.func), Role.PREPROCESSING):
        return True
    if not isinstance(call.func, cst.Attribute):
        return False
    if isinstance(call.func.value, cst.Name) and _of_host_library(module, call.func.value):
        return True
    if call.func.attr.value not in _ENGINES:
        return False
    owner = module.value(call.func.value)
    return owner.kind in (Kind.UNKNOWN, Kind.OBJECT) and owner.definition is None


def _of_host_library(module: Module, name: cst.Name) -> bool:
    """Whether a variable is what a library of the host made: ``index = faiss.IndexFlatL2(8)``."""
    makers = [
        module.qualified(binding.value.func) or ""
        for binding in module.bindings(name)
        if isinstance(binding.value, cst.Call) and not binding.path
    ]
    return bool(makers) and all(
        maker.partition(".")[0] in _HOST_LIBRARIES or maker.startswith(("torchaudio.io.", "torchvision.io."))
        for maker in makers
    )


def shared_with_processes(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the statement of ``node`` fills a tensor of the host in a file that shares such tensors."""
    statement = module.tree.statement(node)
    if not module.tree.mentions("share_memory_") or not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(
        isinstance(target.target, cst.Subscript)
        and module.value(target.target.value).kind is Kind.TENSOR
        and module.value(target.target.value).device is Device.CPU
        for part in statement.body
        if isinstance(part, cst.Assign)
        for target in part.targets
    )


def leaves_torch(module: Module, copy: cst.Call, tensor: cst.BaseExpression, hot: Hot) -> bool:
    """Whether a ``forward`` takes its own input to NumPy, or gives arrays: it is for the host by design."""
    function = module.function(copy)
    if isinstance(function, cst.FunctionDef) and function.name.value == "forward" and function.returns:
        promised = module.source(function.returns.annotation)
        if "ndarray" in promised and "Tensor" not in promised:
            return True
    attribute = _made_array(module, copy)
    if attribute is None:
        return False
    if isinstance(hot.loop, cst.FunctionDef) and _gives_array(module, attribute):
        return True
    while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute):
        tensor = tensor.func.value
    if not isinstance(tensor, cst.Name) or not isinstance(function, cst.FunctionDef):
        return False
    return function.name.value == "forward" and _is_input(module, tensor)


_ON_THE_WAY = frozenset({"detach", "float", "data", "permute", "contiguous"})


def _made_array(module: Module, copy: cst.Call) -> cst.Attribute | None:
    """The ``.numpy`` behind a copy: ``x.cpu().numpy``, ``x.cpu().detach().numpy``."""
    node: cst.CSTNode = copy
    while isinstance(attribute := module.tree.parent(node), cst.Attribute):
        if attribute.attr.value == "numpy":
            return attribute
        if attribute.attr.value not in _ON_THE_WAY:
            return None
        called = module.tree.parent(attribute)
        node = called if isinstance(called, cst.Call) else attribute
    return None


def _works_on_arrays(module: Module, func: cst.BaseExpression) -> bool:
    """``np.clip``, ``self.to_action``: a function of NumPy, or a method of the object itself."""
    if (module.qualified(func) or "").startswith("numpy."):
        return True
    own = isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.value.value == "self"
    return own and module.value(func).kind is not Kind.MODULE


def _gives_array(module: Module, attribute: cst.Attribute) -> bool:
    """Whether ``x.numpy()`` is returned as it is, alone, in a tuple or in a list that is made for it."""
    function = module.function(attribute)
    if (
        not isinstance(function, cst.FunctionDef)
        or function.name.value == "training_step"
        or module.flow.loops(attribute)
    ):
        return False
    node: cst.CSTNode | None = module.tree.parent(attribute)
    for parent in module.tree.ancestors(node) if node is not None else ():
        match parent:
            case cst.Return():
                return True
            case cst.Element() | cst.Tuple() | cst.List() | cst.Arg() | cst.BinaryOperation():
                pass
            case cst.Call(func=cst.Attribute(value=cst.Name() as held, attr=cst.Name(value="append"))):
                return _is_returned(module, module.bindings(held), function)
            case cst.Call(func=func) if _works_on_arrays(module, func):
                pass
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
                bound = module.binding_of(target)
                return bound is not None and _is_returned(module, (bound,), function)
            case _:
                return False
    return False


def _is_returned(module: Module, bindings: Iterable[Binding], function: cst.FunctionDef) -> bool:
    """Whether all that becomes of a variable is that the function returns it, having filled it."""
    reads = [use for binding in bindings for use in module.uses(binding)]
    returned = False
    for read in reads:
        parent = module.tree.parent(read)
        while isinstance(parent, (cst.Element, cst.Tuple)):
            parent = module.tree.parent(parent)
        if isinstance(parent, cst.Return):
            returned = True
        elif not (isinstance(parent, cst.Attribute) and parent.attr.value == "append"):
            return False
    return returned


def _is_input(module: Module, name: cst.Name) -> bool:
    """Whether a variable is a parameter, or goes through one."""
    for binding in module.bindings(name):
        if isinstance(binding.node, cst.Param):
            return True
        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION) and isinstance(
            binding.value, cst.Name
        ):
            return any(isinstance(outer.node, cst.Param) for outer in module.bindings(binding.value))
    return False


# --- a tensor where a number was --------------------------------------------------------------------


class Effect(enum.IntEnum):
    """What a change does to the code that meets the value; ordered, worst first."""

    BREAKS = 0
    NOTICED = 1
    NONE = 2


_HOST_METHODS = frozenset(
    [
        "plot",
        "scatter",
        "hist",
        "bar",
        "semilogy",
        "semilogx",
        "loglog",
        "errorbar",
        "fill_between",
        "writerow",
        "writerows",
    ]
)
_READING_BY_NAME = frozenset(f"builtins.{name}" for name in ("globals", "eval", "exec", "locals", "vars"))
_OF_BITS = (cst.LeftShift, cst.RightShift, cst.BitAnd, cst.BitOr, cst.BitXor)
_DIVIDING = (cst.Divide, cst.FloorDivide, cst.Modulo)
_ZERO_DIVISION = frozenset({"ZeroDivisionError", "ArithmeticError", "Exception", "BaseException"})
_PERCENT_TEXT = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?[rsa]")


def tensor_instead_of_number(module: Module, binding: Binding, *, many: bool) -> Effect:
    """The effect of letting ``binding`` hold tensors of one element instead of Python numbers.

    ``many``: the name stands for a list of them.
    """
    if uses_by_name(module, binding):
        return Effect.NOTICED
    return _worst(module, Standing(binding, _ANY if many else ()))


def tensor_at(module: Module, use: cst.BaseExpression, *, many: bool = False) -> Effect:
    """The effect of a tensor of one element, or ``many``, where an expression is read that gave numbers."""
    return _worst(module, Standing(use, _ANY if many else ()))


_ANY = (None,)
"""The elements of a list, whichever."""


def _worst(module: Module, numbers: Standing) -> Effect:
    """The worst effect on all uses that numbers go on to."""
    return min(verdicts(module, numbers, _effect), default=Effect.NONE)


def uses_by_name(module: Module, binding: Binding) -> bool:
    """Whether code may read a name otherwise: by ``locals()``, ``globals()``, ``eval``, as an attribute."""
    if binding.scope.kind is ScopeKind.CLASS:
        return True
    function = module.function(binding.node)
    everywhere = {"builtins.globals", "builtins.eval", "builtins.exec"}
    for call, name in _reading_by_name(module):
        here = function is None or module.function(call) is function
        if name in everywhere if function is None else name in ("builtins.eval", "builtins.exec") and here:
            return True
        if here and (name == "builtins.locals" or (name == "builtins.vars" and not call.args)):
            return True
    return False


@remembered
def _reading_by_name(module: Module) -> list[tuple[cst.Call, str]]:
    """The calls that read names that are not spelt, or may."""
    called = ((call, module.qualified(call.func)) for call in module.tree.nodes(cst.Call))
    return [(call, name) for call, name in called if name is not None and name in _READING_BY_NAME]


def _effect(module: Module, use: Use) -> Verdict[Effect]:
    """What a use of a number, or of what holds numbers, makes of a tensor in its place."""
    many = bool(use.path)
    match use.kind, use.by:
        case UseKind.ARGUMENT, cst.Call() as call:
            return _as_argument(module, call, use.node, many)
        case UseKind.FORMATTED, cst.FormattedStringExpression() as shown:
            # Without a format, all digits are shown, and what is computed in single precision has others.
            return Effect.NOTICED if many or shown.conversion or not shown.format_spec else Effect.NONE
        case UseKind.OPERAND, cst.BinaryOperation() as operation:
            return _in_arithmetic(module, operation, use.node, many)
        case UseKind.OPERAND, _:
            return ONWARD
        case UseKind.ELEMENT, _:
            return _in_display(module, use)
        case UseKind.COMPARED, cst.Comparison() as comparison if not many:
            return _in_comparison(module, comparison)
        case UseKind.METHOD, _:
            # Methods of a list that do not look at what it holds.
            return Effect.NONE if many and use.name in ("append", "clear") else Effect.NOTICED
        case UseKind.ITEM, _ if many:
            return ONWARD
        case UseKind.SET, _ if many:
            return Effect.NONE if isinstance(module.tree.parent(use.by), cst.Del) else Effect.NOTICED
        case UseKind.AUGMENTED, cst.AugAssign() as statement:
            if many:
                return Effect.NONE
            itself = effect_of_augmenting(module, statement)
            return ONWARD if itself is Effect.NONE else itself
        case UseKind.AUGMENTS, cst.AugAssign(target=cst.Name() as target) if not many:
            bound = module.binding_of(target)
            fits = bound is not None and accumulator_start(module, bound) is Effect.NONE
            return ONWARD if fits else Effect.NOTICED
        case UseKind.ASSIGNED, name:
            bound = module.binding_of(name)
            return Effect.NOTICED if bound is None or uses_by_name(module, bound) else ONWARD
        case ((UseKind.TESTED | UseKind.DISCARDED), _):
            return Effect.NONE
    return ONWARD if use.kind is UseKind.RETURNED else Effect.NOTICED


def _as_argument(module: Module, call: cst.Call, node: cst.BaseExpression, many: bool) -> Verdict[Effect]:
    qualified = module.qualified(call.func)
    package, _, name = (qualified or "").rpartition(".")
    if package == "builtins":
        if name in ("len", "bool", "isinstance", "id", "type"):
            return Effect.NONE if name in ("len", "bool") else Effect.NOTICED
        if many:
            return Standing(call) if name in ("sum", "max", "min") else Effect.NOTICED
        if name in ("float", "int", "complex"):
            return Effect.NONE
        if name in ("abs", "max", "min"):
            return Standing(call)
        return Effect.BREAKS if name in ("round", "divmod") else Effect.NOTICED
    if package == "math":
        return Effect.BREAKS if many else Effect.NONE
    if qualified is not None and qualified.split(".")[0] in HOST_PACKAGES:
        return Effect.BREAKS
    if qualified in ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor"):
        # Of a tensor, `torch.tensor` warns; of a list of them it makes one.
        return Effect.NONE if many and qualified == "torch.tensor" else Effect.NOTICED
    if isinstance(call.func, cst.Attribute):
        method, owner = call.func.attr.value, call.func.value
        if method in _HOST_METHODS:
            return Effect.BREAKS
        if not many and method == "format" and module.value(owner).kind is Kind.STRING:
            text = module.value(owner).constant
            return Effect.NONE if isinstance(text, str) and _has_format(call, node, text) else Effect.NOTICED
        if not many and method == "add_scalar" and module.callee(call) is None:
            return Effect.NONE
        if not many and method == "step" and module.value(owner).kind is Kind.SCHEDULER:
            return Effect.NONE
    return Effect.NOTICED


def _has_format(call: cst.Call, node: cst.BaseExpression, text: str) -> bool:
    """Whether ``str.format`` writes an argument only by formats such as ``.3f``, and never as it is."""
    index, arg = next((i, arg) for i, arg in enumerate(call.args) if arg.value is node)
    if any(a.star for a in call.args[: index + 1]):
        return False
    name = arg.keyword.value if arg.keyword is not None else str(index)
    numbered = itertools.count()
    try:
        fields = [field for field in string.Formatter().parse(text) if field[1] is not None]
    except ValueError:
        return False
    if any("{" in (format_spec or "") for _, _, format_spec, _ in fields):
        return False
    return all(
        format_spec and not conversion
        for _, field, format_spec, conversion in fields
        if (field or str(next(numbered))) == name
    )


def _in_arithmetic(
    module: Module, operation: cst.BinaryOperation, node: cst.BaseExpression, many: bool
) -> Verdict[Effect]:
    left, right = operation.left, operation.right
    if (
        isinstance(operation.operator, cst.Modulo)
        and node is right
        and module.value(left).kind is Kind.STRING
    ):
        alone = not many or isinstance(right, cst.Tuple)
        return _percent_format(module, left) if alone else Effect.NOTICED
    other = left if node is right else right
    if many or module.value(other).kind is Kind.NDARRAY or _of_numpy(module, other):
        return Effect.NOTICED if many else Effect.BREAKS
    if isinstance(operation.operator, (cst.Power, *_OF_BITS)) or _is_huge(module, other):
        # A tensor of integers has no negative powers, and wraps where a Python number grows.
        return Effect.NOTICED
    if isinstance(operation.operator, _DIVIDING) and _catches_division(module, operation):
        # Tensors of floating point raise nothing where zero divides them, or they divide by zero.
        return Effect.NOTICED
    return ONWARD


def _is_huge(module: Module, node: cst.BaseExpression) -> bool:
    constant = module.value(node).constant
    return isinstance(constant, int) and abs(constant) >= 2**31


def _catches_division(module: Module, operation: cst.CSTNode) -> bool:
    """Whether a division by zero is expected: a handler around it that ``ZeroDivisionError`` reaches."""
    caught = (h.type for h in module.tree.handlers(operation))
    return any(
        t is None or any(last_name(each) in _ZERO_DIVISION for each in (t, *module.tree.descendants(t)))
        for t in caught
    )


def _percent_format(module: Module, text: cst.BaseExpression) -> Effect:
    """``%f`` asks a tensor for its number, ``%s`` prints it as a tensor."""
    constant = module.value(text).constant
    if not isinstance(constant, str):
        return Effect.NOTICED
    return Effect.NOTICED if _PERCENT_TEXT.search(constant) else Effect.NONE


def _in_display(module: Module, use: Use) -> Verdict[Effect]:
    """A number in a tuple may be one of several that are returned or formatted; wandb takes tensors, too."""
    if _is_for_host(module, use.by):
        return Effect.BREAKS
    if isinstance(use.by, cst.Dict):
        arg = module.tree.parent(use.by)
        call = module.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        logged = isinstance(call, cst.Call) and module.qualified(call.func) == "wandb.log"
        return Effect.NONE if logged and not use.path else Effect.NOTICED
    return ONWARD if isinstance(use.by, cst.Tuple) else Effect.NOTICED


def _is_for_host(module: Module, display: cst.CSTNode) -> bool:
    """Whether a display, or the outermost one around it, is made for a function that wants host values."""
    node: cst.CSTNode | None = display
    while isinstance(node, (cst.BaseElement, cst.BaseDictElement, cst.List, cst.Tuple, cst.Set, cst.Dict)):
        node = module.tree.parent(node)
    call = module.tree.parent(node) if isinstance(node, cst.Arg) else None
    name = module.qualified(call.func) if isinstance(call, cst.Call) else None
    return (name or "").split(".")[0] in HOST_PACKAGES


def _in_comparison(module: Module, comparison: cst.Comparison) -> Effect:
    """A comparison of sizes that only decides a branch decides it the same way, but for rounding."""
    if len(comparison.comparisons) != 1:
        return Effect.NOTICED
    operator = comparison.comparisons[0].operator
    if isinstance(operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
        return Effect.NOTICED
    decided = module.tree.parent(comparison)
    if isinstance(decided, (cst.If, cst.While)) or (
        isinstance(decided, cst.IfExp) and decided.test is comparison
    ):
        return Effect.NONE
    return Effect.NOTICED


def effect_of_augmenting(module: Module, statement: cst.AugAssign) -> Effect:
    """The effect of a tensor of one element as what a statement such as ``total += x`` changes in place."""
    if isinstance(statement.operator, (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)):
        if module.value(statement.value).kind is Kind.NDARRAY:
            return Effect.BREAKS
        return Effect.NOTICED if _is_huge(module, statement.value) else Effect.NONE
    if isinstance(statement.operator, cst.DivideAssign):
        # In place, a tensor of integers cannot take the quotient.
        if not _starts_as_float(module, statement.target):
            return Effect.BREAKS
        return Effect.NOTICED if _catches_division(module, statement) else Effect.NONE
    return Effect.NOTICED


def accumulator_start(module: Module, binding: Binding) -> Effect:
    """Whether the other definitions of an accumulator's name go with tensors: numbers and tensors do."""
    starts = _starts(module, binding.scope, binding.name)
    return min((effect for start, effect in starts if start is not binding.node), default=Effect.NONE)


@remembered
def _starts(module: Module, scope: Scope, name: str) -> list[tuple[cst.CSTNode, Effect]]:
    """The definitions of a name that do not add to it, and whether a tensor goes with what they make it."""
    found: list[tuple[cst.CSTNode, Effect]] = []
    for binding in scope.bindings.get(name, ()):
        if binding.kind in (BindingKind.AUGMENT, BindingKind.DELETE, BindingKind.DECLARE):
            continue
        begun = assigned_part(binding)
        if begun is None:
            found.append((binding.node, Effect.NOTICED))
            continue
        value = module.value(begun)
        if value.kind is Kind.NDARRAY or _of_numpy(module, begun):
            found.append((binding.node, Effect.BREAKS))
        elif value.kind not in (Kind.NUMBER, Kind.TENSOR):
            found.append((binding.node, Effect.NOTICED))
    return found


def assigned_part(binding: Binding) -> cst.BaseExpression | None:
    """What a name is set to, by itself or as one of several that are written out: ``a, b = 0, 0.0``."""
    value = binding.value
    for place in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or place is None or place >= len(value.elements):
            return None
        if any(isinstance(element, cst.StarredElement) for element in value.elements):
            return None
        value = value.elements[place].value
    return value


def _starts_as_float(module: Module, target: cst.BaseExpression) -> bool:
    if not isinstance(target, cst.Name):
        return False
    binding = module.names.by_node.get(target)
    starts = (
        []
        if binding is None
        else [
            module.value(begun).constant
            for other in binding.scope.bindings.get(binding.name, [])
            if other.kind.value == "assign" and (begun := assigned_part(other)) is not None
        ]
    )
    constants = [constant for constant in starts if constant is not MISSING]
    return bool(constants) and all(isinstance(constant, float) for constant in constants)


def _of_numpy(module: Module, node: cst.BaseExpression) -> bool:
    """``np.float32(0)``: neither an array nor a number that a tensor on the device goes with."""
    return isinstance(node, cst.Call) and (module.qualified(node.func) or "").startswith("numpy.")
