"""What runs only under a check of the release, or of what a release has: each form, and what is none."""

from __future__ import annotations

import re
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.semantics import model
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.syntax import SyntaxTree


def _marked(program: str, package: str = "torch") -> list[bool]:
    """For each call ``mark()`` of a program, whether it is under a check."""
    module = model.build(
        SyntaxTree(dedent(program)),
        LintSettings(),
    )
    calls = [
        c for c in module.tree.nodes(cst.Call) if isinstance(c.func, cst.Name) and c.func.value == "mark"
    ]
    assert calls
    return [ReleaseChecks.of(module).over(call, package) for call in calls]


def cases(text: str) -> dict[str, str]:
    """Programs by their names, which are comments over them."""
    parts = re.split(r"^# (.*)\n", dedent(text).lstrip("\n"), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


HEAD = """
import importlib.metadata, importlib.util, inspect, operator, sys
import packaging.version
import pkg_resources
import torch, torchvision
import torch as th
import torch.distributed as dist
import torch.nn as nn
from packaging import version
from packaging.version import Version, parse
from distutils.version import LooseVersion
"""

UNDER = cases(
    """
    # not in dir
    if "all_gather_into_tensor" not in dir(torch.distributed):
        mark()
    # in dir, else
    if "x" in dir(dist):
        pass
    else:
        mark()
    # __dict__
    if "x" not in torch.nn.__dict__:
        mark()
    # vars
    if "x" not in vars(nn):
        mark()
    # __all__
    if "x" not in torch.__all__:
        mark()
    # hasattr
    if hasattr(torch, "symeig"):
        mark()
    # not hasattr
    if not hasattr(torch.Tensor, "x"):
        mark()
    # hasattr and
    hasattr(torch, "x") and mark()
    # or
    y = getattr(torch, "x", None) or mark()
    # getattr default
    y = getattr(torch, "x", mark())
    # getattr assigned
    y = getattr(torch, "x", None)
    if y is None:
        mark()
    # getattr walrus
    if (y := getattr(torch, "x", None)) is None:
        mark()
    # elif
    if a:
        pass
    elif hasattr(torch, "x"):
        mark()
    # version string
    if torch.__version__ < "1.9":
        mark()
    # alias
    if th.__version__ < "1.9":
        mark()
    # imported version
    from torch import __version__ as v
    if parse(v) < parse('1.9'):
        mark()
    # startswith
    if torch.__version__.startswith("1."):
        mark()
    # torchvision
    if torchvision.__version__ < "0.13":
        mark()
    # packaging
    if version.parse(torch.__version__) >= version.parse("2.0"):
        mark()
    # LooseVersion
    if LooseVersion(torch.__version__) >= LooseVersion("2.0"):
        mark()
    # major
    if Version(torch.__version__).major < 2:
        mark()
    # release tuple
    if Version(torch.__version__).release < (2, 0):
        mark()
    # TORCH_MAJOR
    TORCH_MAJOR = int(torch.__version__.split('.')[0])
    if TORCH_MAJOR < 2:
        mark()
    # unpacked
    major, minor = (int(x) for x in torch.__version__.split('.')[:2])
    if (major, minor) < (1, 9):
        mark()
    # map
    a, b = map(int, torch.__version__.split('.')[:2])
    if a < 2:
        mark()
    # list comprehension
    parts = [int(x) for x in torch.__version__.split('.')[:2]]
    if parts[0] < 2:
        mark()
    # torch_version
    torch_version = tuple(map(int, torch.__version__.split('.')[:2]))
    if torch_version >= (2, 0):
        mark()
    # two names
    v = torch.__version__
    old = v < '2'
    legacy = not old
    if legacy:
        mark()
    # module constant
    NEW = Version(torch.__version__) >= Version('2')
    def f():
        if NEW:
            return 1
        return mark()
    # constant from if
    if torch.__version__ < '2':
        NEW = False
    else:
        NEW = True
    def f():
        if not NEW:
            mark()
    # constant from try
    try:
        from torch.nn import SiLU
        HAS = True
    except ImportError:
        HAS = False
    if not HAS:
        mark()
    # None from try
    try:
        from torch import compile
    except ImportError:
        compile = None
    if compile is None:
        mark()
    # function
    def is_new():
        return torch.__version__ >= '2'
    if not is_new():
        mark()
    # function of a release
    def at_least(v):
        return Version(torch.__version__) >= Version(v)
    if at_least('2'):
        pass
    else:
        mark()
    # function with if
    def is_new():
        if torch.__version__ >= '2':
            return True
        return False
    if not is_new():
        mark()
    # function with try
    def is_new():
        try:
            import torch.compiler
            return True
        except ImportError:
            return False
    if not is_new():
        mark()
    # lambda
    is_new = lambda: torch.__version__ >= '2'
    if not is_new():
        mark()
    # parameter
    def f(v):
        if v < '2':
            mark()
    f(torch.__version__)
    # attribute
    class A:
        def __init__(self):
            self.new = hasattr(torch, 'x')
        def f(self):
            if not self.new:
                mark()
    # property
    class A:
        @property
        def new(self):
            return hasattr(torch, 'x')
        def f(self):
            if not self.new:
                mark()
    # imported flag
    from .utils import TORCH_2_0
    if not TORCH_2_0:
        mark()
    # imported function
    from transformers.utils import is_torch_greater_or_equal
    if is_torch_greater_or_equal('2.0'):
        mark()
    # imported function by release
    from transformers.pytorch_utils import is_torch_greater_or_equal_than_1_13 as new
    from x import is_torch_greater_or_equal_than_2_1
    if is_torch_greater_or_equal_than_2_1:
        mark()
    # is_torch_version
    from accelerate.utils import is_torch_version
    if is_torch_version('<', '1.12'):
        mark()
    # compare_version
    from lightning_utilities.core.imports import compare_version
    if compare_version('torch', operator.ge, '2.0'):
        mark()
    # RequirementCache
    from lightning_utilities.core.imports import RequirementCache
    _NEW = RequirementCache('torch>=2.0')
    if not _NEW:
        mark()
    # digit_version
    from mmcv import TORCH_VERSION, digit_version
    if digit_version(TORCH_VERSION) < digit_version('1.8'):
        mark()
    # pytorch_after
    from monai.utils import pytorch_after
    if not pytorch_after(1, 10):
        mark()
    # HAS_
    from .compat import HAS_SDPA
    if not HAS_SDPA:
        mark()
    # is_torch_x_available
    from transformers.utils import is_torch_sdpa_available
    if not is_torch_sdpa_available():
        mark()
    # attribute of a module
    from . import env
    if env.TORCH_MAJOR < 2:
        mark()
    # metadata
    if Version(importlib.metadata.version('torch')) < Version('2'):
        mark()
    # pkg_resources
    if pkg_resources.get_distribution('torch').version < '2':
        mark()
    # find_spec
    if importlib.util.find_spec('torch.compiler') is None:
        mark()
    # signature
    if 'weights_only' in inspect.signature(torch.load).parameters:
        pass
    else:
        mark()
    # sys.version_info
    if sys.version_info < (3, 8):
        mark()
    # conditional expression
    y = torch.compile if hasattr(torch, 'compile') else mark()
    # nested conditional
    y = (1 if a else mark()) if hasattr(torch, 'compile') else 2
    # early return
    def f():
        if hasattr(torch, 'x'):
            return torch.x()
        return mark()
    # early return in else
    def f():
        if not hasattr(torch, 'x'):
            pass
        else:
            return 1
        mark()
    # early raise
    def f():
        if torch.__version__ >= '2':
            raise RuntimeError
        mark()
    # early return by the name of an imported function
    def f():
        if is_torch_greater_or_equal("2.0"):
            return 1
        mark()
    # early continue
    for x in y:
        if NEW:
            continue
        mark()
    # deeper behind early return
    def f():
        if hasattr(torch, 'x'):
            return torch.x()
        for i in j:
            if i:
                mark()
    # skip
    def test():
        if hasattr(torch, 'x'):
            self.skipTest('x')
        mark()
    # assert
    def f():
        assert torch.__version__ < '2'
        mark()
    # except ImportError
    try:
        from torch.nn import SiLU
    except ImportError:
        mark()
    # except AttributeError
    try:
        torch.x()
    except AttributeError:
        mark()
    # except TypeError
    try:
        f = torch.load(p, weights_only=True)
    except TypeError:
        mark()
    # except several
    try:
        torch.x()
    except (AttributeError, RuntimeError):
        mark()
    # except
    try:
        torch.x()
    except:
        mark()
    # try else
    try:
        from torch import x
    except ImportError:
        pass
    else:
        mark()
    # skipif
    @unittest.skipIf(torch.__version__ >= '2', reason='x')
    def test():
        mark()
    # skipIf of a class
    @unittest.skipIf(hasattr(torch, 'x'), '')
    class T:
        def test(self):
            mark()
    # require decorator
    @require_torch_min_version('2.0')
    def test():
        mark()
    # pytestmark
    pytestmark = mark.skipif(torch.__version__ < '2')
    def test():
        mark()
    # match
    match torch.__version__.split('.')[0]:
        case '1':
            mark()
    # subscript
    y = {True: torch.x, False: mark()}[hasattr(torch, 'x')]
    # comprehension
    y = [mark() for i in j if hasattr(torch, 'x')]
    # defined under
    if hasattr(torch, 'x'):
        f = torch.x
    else:
        def f():
            mark()
    # only called under
    def old():
        mark()
    if not hasattr(torch, 'x'):
        old()
    # only called under, twice removed
    def older():
        mark()
    def old():
        return older()
    f = torch.x if hasattr(torch, 'x') else old
    # only called under, recursive
    def old(n):
        mark()
        old(n - 1)
    if not hasattr(torch, 'x'):
        old(3)
    # method only called under
    class A:
        def f(self):
            if hasattr(torch, 'x'):
                return 1
            return self._old()
        def _old(self):
            mark()
    # class only used under
    class Old:
        def f(self):
            mark()
    if not hasattr(torch, 'x'):
        nn.X = Old
    # while
    while hasattr(torch, 'x'):
        mark()
    # and inside
    if a and hasattr(torch, 'x'):
        mark()
    """
)

FREE = cases(
    """
    # whether there is a TPU
    try:
        import torch_xla.core.xla_model as xm
        tpu = True
    except ImportError:
        tpu = False
    if not tpu:
        mark()
    # no check
    mark()
    # hasattr of something else
    if hasattr(model, 'module'):
        mark()
    # hasattr of self
    class A:
        def f(self):
            if hasattr(self, 'head'):
                mark()
    # dir of something else
    if 'x' not in dir(args):
        mark()
    # getattr without default
    if getattr(torch, kind)(x):
        mark()
    # getattr of something else
    if getattr(args, 'x', None):
        mark()
    # release of something else
    import numpy
    if numpy.__version__ < '2':
        mark()
    # release of a checkpoint
    if Version(state['version']) < Version('2'):
        mark()
    # version of a model
    if args.version >= 2:
        mark()
    # constant of that name
    TORCH_VERSION_CHECK = 0
    torch_version = 3
    if torch_version > 2:
        mark()
    # CUDA of the build
    if torch.version.cuda is not None:
        mark()
    # torch.cuda
    if torch.cuda.is_available():
        mark()
    # torch is there
    from transformers import is_torch_available
    if is_torch_available():
        mark()
    # device is there
    from transformers import is_torch_npu_available
    if is_torch_npu_available():
        mark()
    # other library
    try:
        from apex import amp
    except ImportError:
        mark()
    # other library's flag
    try:
        import apex
        HAS = True
    except ImportError:
        HAS = False
    if HAS:
        mark()
    # imported flag of another library
    from .compat import HAS_APEX
    if HAS_APEX:
        mark()
    # whole library
    try:
        import torch
    except ImportError:
        mark()
    # other failure
    try:
        next(it)
    except StopIteration:
        mark()
    # any failure of something else
    try:
        run()
    except Exception:
        mark()
    # out of memory
    try:
        step()
    except RuntimeError:
        mark()
    # platform
    if sys.platform == 'win32':
        mark()
    # before the check
    def f():
        mark()
        if hasattr(torch, 'x'):
            return 1
        return 2
    # after a check that goes on
    def f():
        if hasattr(torch, 'x'):
            y = 1
        mark()
    # beside
    if hasattr(torch, 'x'):
        y = 1
    mark()
    # other function
    def f():
        if hasattr(torch, 'x'):
            return 1
        return 2
    def g():
        mark()
    # oldest release
    if Version(torch.__version__) < Version('1.8'):
        raise RuntimeError('too old')
    mark()
    # oldest release, by name
    NEW = Version(torch.__version__) >= Version('1.8')
    if not NEW:
        raise RuntimeError('too old')
    mark()
    # oldest release, ends
    if torch.__version__ < '1.8':
        sys.exit('too old')
    mark()
    # oldest release, asserted
    assert torch.__version__ >= '1.8'
    mark()
    # oldest release, by the name of an imported flag
    from .imports import _TORCH_GREATER_EQUAL_2_3
    if not _TORCH_GREATER_EQUAL_2_3:
        raise ImportError
    mark()
    # needs a function
    if not hasattr(torch, 'compile'):
        raise RuntimeError
    mark()
    # called elsewhere, too
    def old():
        mark()
    if not hasattr(torch, 'x'):
        old()
    old()
    # called by a free function
    def older():
        mark()
    def old():
        return older()
    if not hasattr(torch, 'x'):
        old()
    def f():
        older()
    # one another
    def f():
        mark()
        g()
    def g():
        f()
    # never called
    def f():
        mark()
    if hasattr(torch, 'x'):
        g()
    # printed
    print(torch.__version__)
    log(torch.__version__)
    if log:
        mark()
    # result of a model
    loss = model(x, hasattr(torch, 'x'))
    if loss > 1:
        mark()
    # decorator
    @torch.no_grad()
    def f():
        mark()
    # skipif of something else
    @unittest.skipIf(not torch.cuda.is_available(), reason='')
    def f():
        mark()
    # point
    if pt1 > pt2:
        mark()
    # attribute of another class
    class A:
        def __init__(self):
            self.new = hasattr(torch, 'x')
    class B:
        def f(self):
            if self.new:
                mark()
    # handler of a nested try
    try:
        try:
            from torch import x
        except ImportError:
            pass
    finally:
        mark()
    # done with older releases
    def f():
        if torch.__version__ < '1.6':
            return 1
        mark()
    # done with releases that lack a name
    try:
        from torch.cuda.amp import autocast
    except ImportError:
        autocast = None
    def f():
        if autocast is None:
            return 1
        mark()
    """
)


@pytest.mark.parametrize("program", UNDER.values(), ids=UNDER)
def test_under_a_check(program: str) -> None:
    if program.startswith("for x in y"):
        program = "NEW = hasattr(torch, 'x')\n" + program
    assert _marked(HEAD + program) == [True]


@pytest.mark.parametrize("program", FREE.values(), ids=FREE)
def test_not_under_a_check(program: str) -> None:
    assert _marked(HEAD + program) == [False]


def test_a_check_is_about_one_library() -> None:
    program = "import transformers\nif transformers.__version__ < '4.40':\n    mark()"
    assert _marked(program) == [False]
    assert _marked(program, "transformers") == [True]
    assert _marked("import torch\nif torch.__version__ < '2':\n    mark()", "transformers") == [False]
