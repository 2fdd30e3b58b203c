"""The weights that torchvision's builders load for ``pretrained=True``.

They are those of ``handle_legacy_interface``, the same in all releases from 0.13 to 0.29; a test holds them
to the installed one. Every builder takes the name of the weights for the member of the enumeration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

IMAGENET = "IMAGENET1K_V1"

_CLASSIFICATION = """
    alexnet convnext_tiny convnext_small convnext_base convnext_large densenet121 densenet161 densenet169
    densenet201 efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4
    efficientnet_b5 efficientnet_b6 efficientnet_b7 efficientnet_v2_s efficientnet_v2_m efficientnet_v2_l
    googlenet inception_v3 maxvit_t mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3 mobilenet_v2
    mobilenet_v3_large mobilenet_v3_small regnet_y_400mf regnet_y_800mf regnet_y_1_6gf regnet_y_3_2gf
    regnet_y_8gf regnet_y_16gf regnet_y_32gf regnet_x_400mf regnet_x_800mf regnet_x_1_6gf regnet_x_3_2gf
    regnet_x_8gf regnet_x_16gf regnet_x_32gf resnet18 resnet34 resnet50 resnet101 resnet152
    resnext50_32x4d resnext101_32x8d resnext101_64x4d wide_resnet50_2 wide_resnet101_2 shufflenet_v2_x0_5
    shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 swin_t swin_s
    swin_b swin_v2_t swin_v2_s swin_v2_b vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn
    vit_b_16 vit_b_32 vit_l_16 vit_l_32 detection.resnet_fpn_backbone detection.mobilenet_backbone
"""
_OTHERS = {
    "COCO_V1": """
        detection.fasterrcnn_resnet50_fpn detection.fasterrcnn_resnet50_fpn_v2
        detection.fasterrcnn_mobilenet_v3_large_320_fpn detection.fasterrcnn_mobilenet_v3_large_fpn
        detection.fcos_resnet50_fpn detection.keypointrcnn_resnet50_fpn detection.maskrcnn_resnet50_fpn
        detection.maskrcnn_resnet50_fpn_v2 detection.retinanet_resnet50_fpn
        detection.retinanet_resnet50_fpn_v2 detection.ssd300_vgg16 detection.ssdlite320_mobilenet_v3_large
    """,
    "COCO_WITH_VOC_LABELS_V1": """
        segmentation.deeplabv3_resnet50 segmentation.deeplabv3_resnet101 segmentation.fcn_resnet50
        segmentation.deeplabv3_mobilenet_v3_large segmentation.fcn_resnet101
        segmentation.lraspp_mobilenet_v3_large
    """,
    "KINETICS400_V1": """
        video.mvit_v1_b video.mvit_v2_s video.r3d_18 video.mc3_18 video.r2plus1d_18 video.s3d
        video.swin3d_t video.swin3d_s video.swin3d_b
    """,
    "C_T_SKHT_V2": "optical_flow.raft_large",
    "C_T_V2": "optical_flow.raft_small",
}

PRETRAINED: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(_CLASSIFICATION.split(), IMAGENET),
    **{builder: name for name, builders in _OTHERS.items() for builder in builders.split()},
    # These two have none of that name, and raise.
    **dict.fromkeys(["regnet_y_128gf", "vit_h_14"]),
}
"""The name of the weights by builder, with the family in front of those that are no plain classifiers."""

PRETRAINED_BACKBONE: Final[Mapping[str, str]] = {
    builder: "IMAGENET1K_FEATURES" if builder == "detection.ssd300_vgg16" else IMAGENET
    for builder in PRETRAINED
    if builder.startswith(("detection.", "segmentation.")) and not builder.endswith("_backbone")
}
"""The same of the builders that take ``pretrained_backbone``."""

QUANTIZED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        [
            "googlenet",
            "inception_v3",
            "resnet18",
            "resnet50",
            "resnext101_32x8d",
            "resnext101_64x4d",
            "shufflenet_v2_x0_5",
            "shufflenet_v2_x1_0",
            "shufflenet_v2_x1_5",
            "shufflenet_v2_x2_0",
        ],
        "IMAGENET1K_FBGEMM_V1",
    ),
    **dict.fromkeys(["mobilenet_v2", "mobilenet_v3_large"], "IMAGENET1K_QNNPACK_V1"),
}
"""What the builders of ``torchvision.models.quantization`` load with ``quantize=True``."""
