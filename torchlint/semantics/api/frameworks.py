"""Who calls what at every step: hooks of frameworks, and what runs the functions that it is given.

Facts about libraries, as data; the places of a file are computed from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LIGHTNING_STEPS: Final = _words("""
    backward configure_gradient_clipping forward manual_backward on_after_backward
    on_after_batch_transfer on_before_backward on_before_batch_transfer on_before_optimizer_step
    on_before_zero_grad optimizer_step optimizer_zero_grad predict_step test_step test_step_end
    training_step training_step_end transfer_batch_to_device validation_step validation_step_end
""")
"""Methods of a LightningModule that its trainer calls for every batch, beside the hooks around one."""

LIGHTNING_BATCH_HOOK: Final = re.compile(r"^on_(?:train|validation|test|predict)_batch_(?:start|end)$")
"""Hooks of Lightning around a batch."""

LIGHTNING_EVALUATION: Final = re.compile(
    r"^(?:(?:validation|test|predict)_(?:step|step_end|epoch_end)"
    r"|on_(?:validation|test|predict|sanity_check)_\w+)$"
)
"""Methods of a LightningModule that its trainer calls with autograd off."""

_BATCH_CALLBACKS = _words("""
    on_after_backward on_before_backward on_before_optimizer_step on_before_zero_grad
    on_predict_batch_end on_predict_batch_start on_test_batch_end on_test_batch_start
    on_train_batch_end on_train_batch_start on_validation_batch_end on_validation_batch_start
""")

_TRAINER_STEPS = _words("compute_loss training_step prediction_step")

METHODS_OF_STEPS: Final[Mapping[str, frozenset[str]]] = {
    "torch.optim.Optimizer": _words("step"),
    "torch.autograd.Function": _words("forward backward"),
    "lightning.Callback": _BATCH_CALLBACKS,
    "lightning.callbacks.Callback": _BATCH_CALLBACKS,
    "transformers.Trainer": _TRAINER_STEPS,
    "transformers.Seq2SeqTrainer": _TRAINER_STEPS,
    "transformers.TrainerCallback": _words("on_step_begin on_step_end on_substep_end"),
    "transformers.LogitsProcessor": _words("__call__"),
    "transformers.StoppingCriteria": _words("__call__"),
    "torchmetrics.Metric": _words("update"),
    "fastai.callback.core.Callback": _words(
        "before_batch after_pred after_loss before_backward before_step after_step after_batch"
    ),
}
"""Methods of further classes that run at every step, by the class to inherit from."""

HOOK_REGISTRATIONS: Final = _words("""
    register_backward_hook register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook register_hook
    register_post_accumulate_grad_hook
""")
"""Methods of modules and tensors that take a function to run at every forward or backward pass."""

APPLYING_FUNCTIONS: Final = _words("""
    filter map max min reduce sorted starmap tree_map vmap
""")
"""Functions that run the function they are given, there and then."""

PROGRESS_BAR_METHODS: Final = _words("set_description set_description_str set_postfix set_postfix_str")
"""Methods by which a progress bar of tqdm is given what it shows."""

PROGRESS_BARS: Final = frozenset(
    {"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.tqdm_notebook", "tqdm.std.tqdm"}
    | {"tqdm.rich.tqdm", "tqdm.contrib.tqdm"}
)
"""Progress bars, whose instances yield the items of what they are given, also those of heirs."""

COMPILERS: Final = _words("torch._dynamo.optimize torch.compile torchdynamo.optimize")
"""Functions that compile the function or module that they are given."""

SCRIPTERS: Final = _words("torch.jit.script torch.jit.script_if_tracing torch.jit.script_method")
"""Functions by which TorchScript compiles what they are given."""

ITERATION_WRAPPERS: Final = _words("""
    CUDAPrefetcher MpDeviceLoader Progbar ProgressBar chain cycle data_prefetcher enumerate islice
    iter len list log_every notebook_tqdm prefetch prepare progress_bar range reversed take tqdm
    track trange zip
""")
"""Functions around an iterable that hand on its items, by their last name."""

ADMINISTRATIVE_METHOD: Final = re.compile(
    r"^(?!get_\w*(?:feature|embed|logit|action|value|loss|pred|output)|log_prob)"
    r"(?:_?(?:get|set|load|save|print|update|freeze|unfreeze|init|reset|configure|named|register|add|remove"
    r"|enable|disable|is|has|from|push|export|tie|resize|log|count|num|summary|build|make|create|prepare|setup)"
    r"(?:_\w*)?|train|eval|to|cuda|cpu|xpu|mps|half|float|double|bfloat16|type|share_memory|apply|buffers"
    r"|children|preprocess|postprocess|tokenize|collate\w*|requires_grad_|zero_grad|compile|extra_repr|size"
    r"|no_sync|join|device|keys|values|items|append|extend|insert|pop|compute|clear|clone|copy|close"
    r"|\w*(?:state_dict|parameters|params|module|modules))$"
)
"""Methods of modules that administer rather than compute."""

LIGHT_OPERATIONS: Final = _words("""
    append as_tensor bool chunk clone contiguous copy_ cpu cuda detach detach_ dim double
    empty_like expand expand_as fill_ float from_numpy full_like get half int isnan item len load
    long narrow next numel numpy ones_like permute pin_memory print rand_like randn_like
    requires_grad_ reshape select size split squeeze t tensor to tolist transpose type type_as
    unbind unsqueeze view view_as zero_ zeros_like
""")
"""Views, transfers and reads: they cost little, or are what rules look for, and make no loop hot."""

PREPARING: Final = _words("prepare prepare_data_loader prepare_model setup setup_dataloaders setup_module")
"""Methods of Accelerate and Fabric that give back, in the same order, what they have moved or wrapped."""

PLACING_BATCHES: Final = (
    "accelerat",
    "lightning",
    "DataParallel",
    "deepspeed",
    "Fabric",
    "set_default_device",
)
"""What stands in the text of programs in which a framework moves batches, or makes them on a device."""
