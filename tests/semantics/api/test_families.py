"""The families name classes and functions that torch has, and each layer of torch is in the right one."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import reduce
from typing import Any

import pytest
import torch

from torchlint.semantics.api import families

OF_TORCH: dict[str, Iterable[str]] = {
    name: table
    for name, table in vars(families).items()
    if name.isupper() and isinstance(table, (dict, frozenset)) and any("torch." in each for each in table)
    if name != "MODELS_BY_NAME"
}
# Not exported at the top of their package in every release.
ELSEWHERE = {"torch.mtia.Stream", "torch.mtia.Event"}
WHOLE = {"Module", "Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}
WRAPPERS = {"DataParallel"}
BASES = {"RNNBase", "RNNCellBase"}
# Of a release in which nobody has looked at it.
NEW = {"LinearCrossEntropyLoss"}


def _found(dotted: str) -> Any:
    return reduce(getattr, dotted.split(".")[1:], torch)


@pytest.mark.parametrize("name", [each for each in OF_TORCH if not each.startswith("_")])
def test_torch_has_what_is_named(name: str) -> None:
    for dotted in OF_TORCH[name]:
        if dotted not in ELSEWHERE:
            assert callable(_found(dotted)), dotted


def test_every_layer_of_torch_is_with_or_without_parameters() -> None:
    layers = {
        name
        for name, value in vars(torch.nn).items()
        if inspect.isclass(value) and issubclass(value, torch.nn.Module)
    }
    with_parameters = {each.removeprefix("torch.nn.") for each in families.LAYERS_WITH_PARAMETERS}
    without = {each.removeprefix("torch.nn.") for each in families.LAYERS_WITHOUT_PARAMETERS}
    assert not with_parameters & without
    assert with_parameters | without == layers - WHOLE - WRAPPERS - BASES - NEW


def test_layers_without_parameters_have_none() -> None:
    made = 0
    for dotted in families.LAYERS_WITHOUT_PARAMETERS:
        for arguments in ((), (1,), (2, 2), (1, 0.5), (2, 2, 2)):
            try:
                layer = _found(dotted)(*arguments)
            except (TypeError, ValueError, AssertionError):
                continue
            made += 1
            assert not list(layer.parameters()), dotted
            break
    assert made > 90


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        (
            families.has_one_size,
            "torchvision.datasets.CIFAR10 torchvision.datasets.mnist.MNIST",
            "torchvision.datasets.ImageFolder CIFAR10 mine.CIFAR10",
        ),
        (
            families.is_training_arguments,
            """transformers.TrainingArguments transformers.training_args.TrainingArguments trl.SFTConfig
            trl.trainer.sft_config.SFTConfig sentence_transformers.SentenceTransformerTrainingArguments""",
            "transformers.PretrainedConfig trl.ModelConfig mine.TrainingArguments",
        ),
        (
            families.is_lightning_module,
            """lightning.LightningModule pytorch_lightning.LightningModule
            pytorch_lightning.lite.LightningLite""",
            "lightning.LightningDataModule torch.nn.Module",
        ),
        (
            families.is_model_class,
            """timm.models.VisionTransformer torch_geometric.nn.conv.GCNConv transformers.PreTrainedModel
            diffusers.ModelMixin torch.jit.ScriptModule torchmetrics.Accuracy lightning.LightningModule""",
            "timm.models.create_model timm.data.Mixup transformers.PretrainedConfig lightning.Trainer",
        ),
        (
            families.is_loader_class,
            """torch_geometric.loader.DataLoader monai.data.DataLoader torchdata.dataloader2.DataLoader2
            monai.data.ThreadDataLoader""",
            "torch.utils.data.DataLoader mine.DataLoader torchdata.DataLoaderOptions",
        ),
        (
            families.makes_model,
            """timm.create_model transformers.AutoModel.from_pretrained transformers.BertForMaskedLM
            diffusers.UNet2DConditionModel.from_pretrained transformers.AutoModelForCausalLM.from_config""",
            """transformers.AutoTokenizer.from_pretrained transformers.Formatter timm.list_models
            transformers.models.bert.BertModel transformers.FlaxBertForMaskedLM.from_pretrained""",
        ),
        (
            families.is_pretrained_class,
            """transformers.AutoModel transformers.AutoModelForCausalLM transformers.GPT2LMHeadModel
            transformers.BertForMaskedLM""",
            """transformers.AutoTokenizer transformers.Formatter diffusers.UNet2DConditionModel
            transformers.TFBertForMaskedLM""",
        ),
        (
            families.runs_elsewhere,
            """ultralytics.YOLO ultralytics.YOLOWorld onnxruntime.InferenceSession keras.models.load_model
            tensorflow.keras.models.load_model xgboost.XGBClassifier vllm.LLM
            transformers.TFBertModel.from_pretrained transformers.FlaxBertForMaskedLM.from_pretrained""",
            """ultralytics.utils.ops xgboost.sklearn.XGBModel tensorflow.constant torch.nn.Linear
            transformers.BertModel.from_pretrained transformers.TFBertModel""",
        ),
    ],
)
def test_a_family_is_known_by_its_names(question: Any, yes: str, no: str) -> None:
    assert [name for name in yes.split() if not question(name)] == []
    assert [name for name in no.split() if question(name)] == []
