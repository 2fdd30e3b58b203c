"""Families of classes and functions of libraries that are asked for together, by their public names.

What torch has of them is held against the installed release by ``tests/semantics/api/test_families.py``; the
other libraries need not be installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def listed(prefix: str, names: str) -> frozenset[str]:
    """Return the names in a text, each with the prefix: ``torch.nn.Linear``."""
    return frozenset(prefix + name for name in names.split())


def _by_dimensions(*patterns: str) -> Mapping[str, int]:
    return {pattern.format(number): number for pattern in patterns for number in (1, 2, 3)}


# --- layers and functions of torch ---------------------------------------------------------------------

CONVOLUTION_LAYERS: Final = _by_dimensions(
    "torch.nn.Conv{}d",
    "torch.nn.ConvTranspose{}d",
    "torch.nn.LazyConv{}d",
    "torch.nn.LazyConvTranspose{}d",
)
"""Layers that convolve, with the number of dimensions that they do it over."""

CONVOLUTION_FUNCTIONS: Final = _by_dimensions(
    "torch.nn.functional.conv{}d",
    "torch.nn.functional.conv_transpose{}d",
    "torch.conv{}d",
    "torch.conv_transpose{}d",
)
"""Functions that convolve, with the number of dimensions that they do it over."""

CONVOLUTIONS: Final[Mapping[str, int]] = {**CONVOLUTION_LAYERS, **CONVOLUTION_FUNCTIONS}
"""Layers and functions that convolve, with the number of dimensions that they do it over."""

LINEAR_LAYERS: Final = listed("torch.nn.", "Linear LazyLinear")
"""Layers that multiply with one matrix."""

RECURRENT_LAYERS: Final = listed("torch.nn.", "LSTM GRU RNN")
"""Layers that go through a sequence."""

RECURRENT_CELLS: Final = listed("torch.nn.", "LSTMCell GRUCell RNNCell")
"""Layers that do one step of a recurrence."""

TRANSFORMERS: Final = listed(
    "torch.nn.",
    "Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer",
)
"""The transformer of torch, and its parts."""

ATTENTION: Final = TRANSFORMERS | listed(
    "torch.nn.",
    "MultiheadAttention functional.scaled_dot_product_attention functional.multi_head_attention_forward",
)
"""Layers and functions that compute attention."""

BATCH_NORMS: Final = listed(
    "torch.nn.",
    "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
)
"""Layers that normalise over the batch."""

INSTANCE_NORMS: Final = listed(
    "torch.nn.",
    "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
)
"""Layers that normalise over each sample."""

MATRIX_PRODUCTS: Final = (
    LINEAR_LAYERS
    | RECURRENT_LAYERS
    | RECURRENT_CELLS
    | ATTENTION
    | listed("torch.nn.", "Bilinear functional.linear functional.bilinear")
    | listed("torch.", "matmul mm bmm einsum addmm baddbmm")
)
"""Layers and functions whose work is products of matrices."""

LARGE_LAYERS: Final = (
    frozenset(CONVOLUTION_LAYERS)
    | TRANSFORMERS
    | listed("torch.nn.", "MultiheadAttention LazyLinear Bilinear LSTMCell GRUCell")
)
"""Layers with weights whose number the sizes of `Linear` and of recurrent layers do not tell."""

DROPOUTS: Final = listed(
    "torch.nn.", "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout"
)
"""Layers that leave something out at random while a model trains."""

LAYERS_WITH_PARAMETERS: Final = (
    frozenset(CONVOLUTION_LAYERS)
    | LINEAR_LAYERS
    | RECURRENT_LAYERS
    | RECURRENT_CELLS
    | TRANSFORMERS
    | BATCH_NORMS
    | INSTANCE_NORMS
    | listed("torch.nn.", "AdaptiveLogSoftmaxWithLoss Bilinear Embedding EmbeddingBag GroupNorm LayerNorm")
    | listed("torch.nn.", "MultiheadAttention PReLU RMSNorm")
)
"""Layers that have parameters, unless they are told not to, or buffers."""

LAYERS_WITHOUT_PARAMETERS: Final = DROPOUTS | listed(
    "torch.nn.",
    """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss CELU CTCLoss ChannelShuffle
    CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d CosineEmbeddingLoss
    CosineSimilarity CrossEntropyLoss CrossMapLRN2d ELU Flatten Fold FractionalMaxPool2d FractionalMaxPool3d
    GELU GLU GaussianNLLLoss Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity
    KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LeakyReLU LocalResponseNorm LogSigmoid LogSoftmax MSELoss
    MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish
    MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PairwiseDistance
    PixelShuffle PixelUnshuffle PoissonNLLLoss RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d
    ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU SiLU Sigmoid SmoothL1Loss
    SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold
    TripletMarginLoss TripletMarginWithDistanceLoss Unflatten Unfold Upsample UpsamplingBilinear2d
    UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
    """,
)
"""Layers without parameters and buffers: what they compute is recorded only if their input is."""

DEPENDENT_ON_MODE: Final = (
    DROPOUTS
    | RECURRENT_LAYERS
    | TRANSFORMERS
    | BATCH_NORMS
    | INSTANCE_NORMS
    | listed("torch.nn.", "MultiheadAttention RReLU")
    | listed("torch.nn.functional.", "alpha_dropout batch_norm dropout dropout1d dropout2d dropout3d")
    | listed("torch.nn.functional.", "feature_alpha_dropout instance_norm multi_head_attention_forward rrelu")
    | listed("torch.nn.functional.", "scaled_dot_product_attention")
)
"""Layers and functions that compute something else in training mode than in evaluation mode, or may."""

QUEUES: Final = (
    listed("torch.", "Stream Event")
    | listed("torch.cuda.", "Stream ExternalStream Event streams.Stream streams.Event")
    | listed("torch.xpu.", "Stream Event streams.Stream streams.Event")
    | listed("torch.mtia.", "Stream Event")
    | frozenset({"torch.mps.event.Event"})
)
"""Classes whose ``synchronize`` waits for what a device has to do."""


# --- other libraries -----------------------------------------------------------------------------------

TEST_LIBRARIES: Final = frozenset({"unittest", "pytest", "hypothesis"})
"""What unit tests are written with."""

DRAWING_LIBRARIES: Final = frozenset({"matplotlib", "seaborn", "plotly", "bokeh", "altair", "pylab"})
"""What draws plots for people."""

WALL_CLOCKS: Final = frozenset(
    {f"time.{name}{unit}" for name in ("time", "perf_counter", "monotonic") for unit in ("", "_ns")}
    | {"timeit.default_timer"}
)
"""Functions that say how late it is, for times between two readings."""

CLOCKS: Final = WALL_CLOCKS | {"time.process_time", "time.process_time_ns", "datetime.datetime.now"}
"""All functions whose result stands for a moment."""

_ONE_SIZE = listed(
    "",
    "CIFAR10 CIFAR100 MNIST FashionMNIST EMNIST KMNIST QMNIST MovingMNIST SVHN STL10 USPS Omniglot FakeData"
    " PCAM EuroSAT",
)
CROPS: Final = listed(
    "",
    "RandomResizedCrop RandomSizedCrop RandomCrop CenterCrop center_crop random_crop FiveCrop TenCrop",
)
"""The last names of transforms whose results have one size, in torchvision and in what imitates it."""

NAMESPACES: Final = listed("", "parse_args parse_known_args parse_args_into_dataclasses Namespace")
"""The last names of what makes the options of a program in argparse, and in transformers on top of it."""

RESIZES: Final = frozenset({"Resize", "Scale", "resize"})
"""The last names of transforms whose results have one size if both sides of it are given."""

_TRAINING_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "transformers": listed("", "TrainingArguments Seq2SeqTrainingArguments"),
    "trl": listed(
        "",
        """
        BCOConfig CPOConfig DPOConfig GKDConfig GRPOConfig KTOConfig NashMDConfig ORPOConfig OnlineDPOConfig
        PPOConfig PRMConfig RLOOConfig RewardConfig SFTConfig XPOConfig
        """,
    ),
    "sentence_transformers": listed(
        "",
        """
        CrossEncoderTrainingArguments SentenceTransformerTrainingArguments SparseEncoderTrainingArguments
        """,
    ),
}

_MODEL_MAKERS = frozenset(
    {"timm.create_model", "timm.models.create_model", "torch.hub.load", "open_clip.create_model"}
    | {"torchvision.models.get_model", "sentence_transformers.SentenceTransformer"}
)
MODELS_BY_NAME: Final = frozenset(
    {"timm.create_model", "timm.models.create_model", "torchvision.models.get_model", "torch.hub.load"}
)
"""Functions that make the model whose name they are given first, or second."""

_HOLDERS_OF_MODELS = ("timm.models.", "torch_geometric.nn.", "dgl.nn.", "torchmetrics.")
_PACKAGES_OF_LOADERS = ("torch_geometric.", "torchdata.", "monai.", "dgl.", "torchvision.")
_OTHER_RUNTIMES = listed("ultralytics.", "RTDETR SAM FastSAM NAS") | {
    "onnxruntime.InferenceSession",
    "faster_whisper.WhisperModel",
    "vllm.LLM",
    # Their results are annotations and arrays, on the host.
    "pyannote.audio.Pipeline.from_pretrained",
    "transformers.pipeline",
}
_PACKAGES_OF_OTHER_RUNTIMES = frozenset({"openvino", "xgboost", "lightgbm"})
_PACKAGES_OF_MANY_RUNTIMES = frozenset({"diffusers", "transformers"})
_CLASSES_OF_OTHER_RUNTIMES = ("CoreML", "Flax", "Keras", "ONNX", "Onnx", "OpenVINO", "TRT", "TensorRT")
_SHORT_FOR_OTHER_RUNTIMES = ("ORT", "OV", "TF")

WRITERS: Final = listed(
    "",
    """
    add_image add_images create_dataset draw dump export fromarray hist imsave imshow imwrite plot save
    save_file save_image save_images savefig savetxt savez savez_compressed scatter show to_csv to_hdf to_json
    to_parquet to_pil_image tofile write write_jpeg write_png write_video write_wav writelines writerow
    writerows
    """,
)
"""What functions and methods are called, in many libraries, that save, draw or write what they are given."""

HOST_PACKAGES: Final = listed(
    "",
    "numpy json pandas matplotlib seaborn scipy sklearn statistics csv yaml cv2 PIL plotly collections heapq",
)
"""Packages whose functions work on values of the host, and raise for tensors on a device."""

HOST_ALGORITHMS: Final = listed("", "fcluster lapjv linear_sum_assignment linkage")
"""Algorithms that have no counterpart on a device, by whatever import they are had."""


def has_one_size(dotted: str) -> bool:
    """Return whether the images of a data set of torchvision all have the same size."""
    return dotted.startswith("torchvision.datasets.") and dotted.rpartition(".")[2] in _ONE_SIZE


def is_training_arguments(dotted: str) -> bool:
    """Return whether a class is ``TrainingArguments``, or one that inherits all of its parameters."""
    package, _, rest = dotted.partition(".")
    return rest.rpartition(".")[2] in _TRAINING_ARGUMENTS.get(package, ())


def is_lightning_module(dotted: str) -> bool:
    """Return whether a class is the ``LightningModule``, whichever package it is imported from."""
    return dotted.rpartition(".")[2] in ("LightningModule", "LightningLite")


def is_model_class(dotted: str) -> bool:
    """Return whether a class of another library is a module of torch."""
    last = dotted.rpartition(".")[2]
    if dotted.startswith(_HOLDERS_OF_MODELS):
        return last[:1].isupper()
    return (
        last.endswith(("LightningModule", "LightningLite", "PreTrainedModel"))
        or last == "ModelMixin"
        or dotted in ("torch.jit.ScriptModule", "torch.ScriptModule")
    )


def is_loader_class(dotted: str) -> bool:
    """Return whether the loader of another library is iterated as torch's own."""
    last = dotted.rpartition(".")[2].rstrip("0123456789")
    return dotted.startswith(_PACKAGES_OF_LOADERS) and last.endswith("DataLoader")


def makes_model(dotted: str) -> bool:
    """Return whether a function, a class or a method of it makes a module of torch, going by its name."""
    if dotted in _MODEL_MAKERS:
        return True
    package, _, made = dotted.partition(".")
    made = made.removesuffix(".from_pretrained").removesuffix(".from_config")
    if package not in _PACKAGES_OF_MANY_RUNTIMES or "." in made or is_of_other_runtime(made):
        return False
    return made.endswith(("Model", "VAE")) or any(part in made for part in ("Head", "UNet")) or _is_for(made)


def _is_for(name: str) -> bool:
    """Return whether it is ``AutoModelForCausalLM``, ``BertForMaskedLM``."""
    _, found, task = name.partition("For")
    return bool(found) and task[:1].isupper()


def is_pretrained_class(dotted: str) -> bool:
    """Return whether a class of Transformers has the parameters of ``PreTrainedModel.from_pretrained``."""
    package, _, name = dotted.partition(".")
    if package != "transformers" or "." in name or is_of_other_runtime(name):
        return False
    return name.startswith("AutoModel") or name.endswith(("Model", "LMHeadModel")) or _is_for(name)


def is_of_other_runtime(name: str) -> bool:
    """Return whether a class of this name is a model of another runtime: ``TFBertModel``, ``ORTModel``."""
    if name.startswith(_CLASSES_OF_OTHER_RUNTIMES):
        return True
    return any(
        name.startswith(short) and name.removeprefix(short)[:1].isupper()
        for short in _SHORT_FOR_OTHER_RUNTIMES
    )


def runs_elsewhere(dotted: str) -> bool:
    """Return whether a call makes a model that is no module of torch, or switches autograd off itself."""
    package, _, name = dotted.partition(".")
    if package in _PACKAGES_OF_OTHER_RUNTIMES:
        return bool(name) and "." not in name
    if package == "ultralytics" and name.startswith("YOLO"):
        return "." not in name
    if dotted.removeprefix("tensorflow.").startswith("keras."):
        last = name.rpartition(".")[2]
        return last[:1].isupper() or last == "load_model"
    made, _, method = name.partition(".")
    if package in _PACKAGES_OF_MANY_RUNTIMES and method.startswith("from_"):
        return is_of_other_runtime(made)
    return dotted in _OTHER_RUNTIMES
