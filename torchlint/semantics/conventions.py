"""What variables are conventionally called, for places where nothing else tells what they are.

Conventions come last: after assignments, annotations, the calls in the file and how a variable is used.
"""

from __future__ import annotations

import re

DEVICE_NAME = re.compile(r"(^|_)(device|dev|gpu|cuda|local_rank)(_?ids?)?$")
LOADER_NAME = re.compile(
    r"^(\w+_)?(data_?loader|(train|trn|val|valid|validation|test|eval|dev)_?(data_?)?(loader|dl))(_\w+)?$|^loader$",
    re.IGNORECASE,
)
MODEL_NAME = re.compile(
    # ``build_model`` and ``train_model`` are functions that do something to models.
    r"^(?!_?(get|build|make|create|load|save|set|init|define|setup|prepare|update|train|test|eval|evaluate|run|export"
    r"|convert|wrap|print|log|register|freeze|unfreeze|compile|construct|instantiate|configure|has|is|use"
    r"|validate|fit|score|check|infer|predict|fine_?tune|pre_?train|copy|clone|restore|resume|reset|download)_)"
    r"((\w+_)?(model|net|network|policy|actor|critic|discriminator|backbone|unet|vae)|module"
    r"|net(_[gd]|[GD])(_[a-zA-Z])?)$"
)
# What says when to stop, or where to split, computes no loss.
CRITERION_NAME = re.compile(
    r"^(?!(\w+_)?(stop|stopping|convergence|termination|split|selection|acceptance)_criteri)(\w+_)?(criterion(?!_(fn|func|function)$)|loss_?(fn|func|function))(_\w+)?$",
    re.IGNORECASE,
)
# Functions that make what they are called after: ``build_criterion``.
MAKER_NAME = re.compile(
    r"^_*(get|build|make|create|choose|select|init|setup|prepare|configure|define|load|instantiate|construct)_",
    re.IGNORECASE,
)
# Libraries beside torch whose models are written in the same words.
OTHER_FRAMEWORKS = frozenset(
    {"caffe", "chainer", "cv2", "equinox", "flax", "haiku", "jax", "jittor", "keras", "megengine"}
    | {"mindspore", "mlx", "mxnet", "oneflow", "paddle", "tensorflow", "tinygrad"}
)
# Classes of other runtimes, whatever the variable is called that is annotated with one.
OTHER_RUNTIME_CLASS = re.compile(
    r"^(Onnx|ONNX|ORT[A-Z]|OV[A-Z]|OpenVINO|TensorRT|TRT|Flax|TF[A-Z]|Keras|CoreML)"
)
# What is called with a batch as a model or a loss is, though nothing tells what it is: ``self.net_g(x)``.
CALLED_MODULE_NAME = re.compile(
    r"^(model|net|network|policy|critic|actor|cri|criterion|generator|discriminator|encoder|decoder|backbone"
    r"|head)\d?(_\w+)?$",
    re.IGNORECASE,
)
# Copies of models that no gradient ever reaches.
COPY_NAME = re.compile(
    r"(?:^|_)(?:ema|teacher|swa|averaged?|shadow|target|momentum|old|frozen|ref|reference)(?:_|$)"
)
# Also one of several: ``optimizer_d``, ``optim_encoder``, ``opt1``, and, asked in lower case, ``optimizerG``.
OPTIMIZER_NAME = re.compile(
    r"^(?!\w*sched)(\w+_)?((optimizer|optim)(_\w+|[a-hyz]|\d+)?|opt(_?([a-hyz]|\d+)|_ema|_gen|_disc)?)$"
)
# ``use_aux_loss`` and ``compute_loss`` are a switch and a function.
LOSS_NAME = re.compile(
    r"^(?!(add|apply|calc|calculate|compute|do|enable|get|has|ignore|include|is|log|no|reduce|report|return|skip"
    r"|should|track|use|want|with)_)(?:(\w+_)?loss|loss_(?:[dg]|rec|recon|kld?|ce|bce|mse|l[12]|gan|adv|cls|reg"
    r"|box|obj|mask|seg|aux|real|fake|gen|disc|mel|percep|vgg|tv|style|content|contrast|ctc|att|nll|kd))$",
    re.IGNORECASE,
)

# Collate functions make these, and loops that move a batch often leave them out.
LENGTHS_NAME = re.compile(r"(^|_)(lens?|lengths?|sizes?)(_list)?$")

# Functions that run over a whole data set, and not over one batch.
SUMMARY_FUNCTION = re.compile(
    r"^_*(?!\w*(?:step|batch|iter))(?:(?:run_)?(?:validate|evaluate|validation|evaluation|train|test|eval)(?:_|$)"
    r"|\w*epoch(?:_|$))"
)

# Functions each call of which is one step of training.
STEP_FUNCTION = re.compile(r"(?:^|_)(?:step|update|optimi[sz]e|learn|iteration)(?:_|$)")

# What collects numbers for a report.
RECORDS_NAME = re.compile(r"(^|_)(logs?|log_dict|history|records?|meters?|stats|statistics|summary)$")

# ``labels_host`` and ``cpu_state`` are called after where they are.
# Those of a packed sequence always are on the host.
HOST_NAME = re.compile(r"(^|_)(host|cpu)(_|$)|^batch_sizes$")

OPTIONS_NAME = re.compile(
    r"(^|\.|_)(opts?|args|cfg|config|conf|hparams|hps|flags|options|settings)$", re.IGNORECASE
)

# What pipelines of diffusers call the models that they register; beside them stand tokenizers and schedulers.
PIPELINE_MODEL = re.compile(
    r"^(\w+_)?(unet|transformer|vae|controlnet|prior|decoder|movq|vqvae|vqgan|text_encoder|image_encoder"
    r"|vision_encoder|audio_encoder|adapter|denoiser|vocoder|projection_model|language_model)(_\d+|2)?$"
)

# Diffusion schedulers keep their tables of noise levels in host memory.
NOISE_SCHEDULER = re.compile(r"(^|\.|_)scheduler$")
NOISE_LEVEL = re.compile(r"^_?(sigma|alpha|beta|lambda)")

# What is called after the host on purpose: ``x_host``, ``host`` for a device.
SAYS_HOST = re.compile(r"(^|_)host(_|$)")

# Strings that name an accelerator, as ``torch.device`` takes them.
ACCELERATOR_STRING = re.compile(r"^(cuda|mps|xpu|npu|hpu|xla|musa|mlu)(:|$)")

# Methods of modules that are called from outside to use the model; what decodes or infers may be a part.
MODEL_USE = re.compile(r"^(?:generate|sample|predict)(?:_|$)")
