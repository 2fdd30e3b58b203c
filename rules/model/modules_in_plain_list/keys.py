"""Names that ``nn.Module`` and its containers have, which the modules registered in them cannot have."""

from __future__ import annotations

from typing import Final

_NAMES = """
    T_destination add_module apply bfloat16 buffers call_super_init children clear compile cpu cuda double
    dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu
    items keys load_state_dict modules mtia named_buffers named_children named_modules named_parameters
    parameters pop register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter register_state_dict_post_hook
    register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory state_dict to
    to_empty train training type update values xpu zero_grad
"""
TAKEN_NAMES: Final = frozenset(_NAMES.split())
"""What ``nn.ModuleDict`` refuses as a key, beside names with a dot and those that begin with an underscore.

The newest release has all of them; a test asks the torch that is installed.
"""


def may_be_key(key: object) -> bool:
    """Return whether ``nn.ModuleDict`` takes a key."""
    return isinstance(key, str) and bool(key) and "." not in key and key[0] != "_" and key not in TAKEN_NAMES
