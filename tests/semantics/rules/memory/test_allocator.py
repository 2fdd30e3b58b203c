"""Where the allocator of device memory is configured, what torch thinks of it, and whether it still looks."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.memory.allocator_configured_too_late import allocator
from torchlint.semantics.environmentvariables import Setting
from torchlint.semantics.module import Module


def all_settings(module: Module) -> list[Setting]:
    """Every setting of a program, in source order."""
    nodes: list[cst.Assign | cst.Call] = [*module.tree.nodes(cst.Assign), *module.tree.nodes(cst.Call)]
    nodes.sort(key=module.tree.order.__getitem__)
    return [setting for node in nodes for setting in allocator.configurations(module, node)]


@pytest.mark.parametrize(
    ("line", "variables"),
    [
        ('os.environ["PYTORCH_CUDA_ALLOC_CONF"] = text', ["PYTORCH_CUDA_ALLOC_CONF"]),
        ('environ["PYTORCH_ALLOC_CONF"] = text', ["PYTORCH_ALLOC_CONF"]),
        ('os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", text)', ["PYTORCH_CUDA_ALLOC_CONF"]),
        ('os.putenv("PYTORCH_CUDA_ALLOC_CONF", text)', ["PYTORCH_CUDA_ALLOC_CONF"]),
        ('os.environ.update({"A": "1", "PYTORCH_ALLOC_CONF": text})', ["PYTORCH_ALLOC_CONF"]),
        ('os.environ.update(A="1", PYTORCH_ALLOC_CONF=text)', ["PYTORCH_ALLOC_CONF"]),
        ('x = os.environ["PYTORCH_CUDA_ALLOC_CONFIG"] = text', ["PYTORCH_CUDA_ALLOC_CONFIG"]),
        ('own["PYTORCH_CUDA_ALLOC_CONF"] = text', []),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = text', []),
        ("os.environ[PYTORCH_ALLOC_CONF] = text", []),
        ('text = os.environ["PYTORCH_CUDA_ALLOC_CONF"]', []),
        ('os.environ.get("PYTORCH_CUDA_ALLOC_CONF", text)', []),
    ],
)
def test_what_sets_it(semantic_model: Callable[[str], Module], line: str, variables: list[str]) -> None:
    module = semantic_model(f"import os\nfrom os import environ\n{line}\n")
    assert [setting.variable for setting in all_settings(module)] == variables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("expandable_segments:True", []),
        ("expandable_segments: True , max_split_size_mb:128", []),
        ("expandable_segments:True,", []),
        ("garbage_collection_threshold:0.6,max_split_size_mb:20", []),
        ("roundup_power2_divisions:[256:1,512:2,1024:4,>:8],backend:native", []),
        ("expandable_segments_reserve_by_class:[a:0.5,b:40G]", []),
        ("max_split_size:128", ["max_split_size_mb:128"]),
        ("max_split_size_mb=128", ["max_split_size_mb:128"]),
        ("expandable_segments:true", ["expandable_segments:True"]),
        ("expandable_segments:1,max_split_mb:64", ["expandable_segments:True", "max_split_size_mb:64"]),
        ("expandable_segments:yes", [None]),
        ("expandable_segments", [None]),
        ("max_split_size_mb:8", [None]),
        ("garbage_collection_threshold:80", [None]),
        (
            "max_split_size_mb:64;garbage_collection_threshold:0.6",
            ["max_split_size_mb:64,garbage_collection_threshold:0.6"],
        ),
        ("garbage_collection_threshold:1.0", [None]),
        ("memory_fraction_limit:0.5", [None]),
        (
            "expandable_segments:True;max_split_size_mb:128",
            ["expandable_segments:True,max_split_size_mb:128"],
        ),
    ],
)
def test_what_torch_makes_of_it(
    semantic_model: Callable[[str], Module], text: str, expected: list[str | None]
) -> None:
    module = semantic_model(f'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "{text}"\n')
    (setting,) = all_settings(module)
    assert [mistake.right for mistake in allocator.mistakes(setting)] == expected


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PYTORCH_CUDA_ALLOC_CONFIG", "PYTORCH_CUDA_ALLOC_CONF"),
        ("PYTORCH_CUDA_ALLOCATOR_CONF", "PYTORCH_CUDA_ALLOC_CONF"),
        ("PYTORCH_ALLOC_CONFIG", "PYTORCH_ALLOC_CONF"),
        ("PYTORCH_CUDA_ALLOC_CONF", None),
        ("PYTORCH_HIP_ALLOC_CONF", None),
        ("PYTORCH_NPU_ALLOC_CONF", None),
        ("PYTORCH_ALLOWED", None),
    ],
)
def test_which_variable_is_meant(
    semantic_model: Callable[[str], Module], name: str, meant: str | None
) -> None:
    module = semantic_model(f'import os\nos.environ["{name}"] = "1"\n')
    assert [allocator.misspelt_variable(setting) for setting in all_settings(module)] == (
        [] if name == "PYTORCH_ALLOWED" else [meant]
    )


SET = 'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"'
BACKEND = 'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"'


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        # Measured in a process each, with torch 2.11 on an H100: what was set behind this call had no effect.
        (["torch.cuda.init()", SET], True),
        (["torch.cuda.synchronize()", SET], True),
        (["torch.cuda.reset_peak_memory_stats()", SET], True),
        (["torch.cuda.mem_get_info()", SET], True),
        (["torch.zeros(8).pin_memory()", SET], True),
        (['torch.zeros(8, device="cuda")', SET], True),
        (["torch.zeros(8).cuda()", SET], True),
        (['torch.nn.Linear(2, 2).to("cuda:0")', SET], True),
        # And behind these it had one.
        (["torch.cuda.is_available()", SET], False),
        (["torch.cuda.device_count()", SET], False),
        (["torch.cuda.empty_cache()", SET], False),
        (["torch.cuda.memory_allocated()", SET], False),
        (["torch.cuda.Stream()", SET], False),
        (['torch.Generator(device="cuda")', SET], False),
        (['torch.set_default_device("cuda")', SET], False),
        (["pass", SET], False),
        # The backend is chosen by the import.
        (["pass", BACKEND], True),
        # Order.
        ([SET, "torch.cuda.init()"], False),
        (["def f():", "    torch.cuda.init()", SET], False),
        (["def f():", "    torch.cuda.init()", "f()", SET], True),
        (["def f():", f"    {SET}", "torch.cuda.init()", "f()"], True),
        (["def f():", f"    {SET}", "f()", "torch.cuda.init()"], False),
        (["def f():", f"    {SET}", "f()", "torch.cuda.init()", "f()"], False),
        (["def f():", f"    {SET}", "torch.cuda.init()"], True),
        (["if torch.cuda.is_available():", "    torch.cuda.init()", SET], True),
        (["if flag:", "    torch.cuda.init()", SET], False),
        (["if flag:", "    torch.cuda.init()", "else:", f"    {SET}"], False),
        (["try:", "    torch.cuda.init()", "except RuntimeError:", f"    {SET}"], False),
        (["f = lambda: torch.cuda.init()", SET], False),
        ([SET, "torch.cuda.init()", SET], False),
        (["torch.cuda.init()", SET, "subprocess.run(command)"], False),
    ],
)
def test_whether_it_comes_too_late(
    semantic_model: Callable[[str], Module], lines: list[str], late: bool
) -> None:
    module = semantic_model(
        "\n".join(
            ["import os", "import subprocess" * ("subprocess" in lines[-1]), "import torch", *lines, ""]
        )
    )
    setting = all_settings(module)[-1]
    assert (allocator.too_late(module, setting) is not None) is late
