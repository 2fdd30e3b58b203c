"""Signatures of PyTorch and its frameworks, as data: parameter names, their order and their defaults.

Functions written in Python are as in torch 2.13; a test holds them against the installed torch. Those written
in C++ are held against the stubs that torch ships. Where releases differ, the table follows the newest:

* ``zero_grad(set_to_none=...)`` defaults to False before torch 2.0;
* the ``bias`` of ``LayerNorm`` went in before ``device`` in 2.1, that of the other norms came later still, by
  keyword only;
* ``foreach`` and ``fused`` came to the optimizers between 1.12 and 2.3.

A key holds the names of all functions that share a signature; the annotation of a parameter says what it
accepts where that tells two overloads apart (see ``Parameter.accepts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchlint.semantics.calls import Signature, parse_signature

Overloads = str | tuple[str, ...]

_LOADER = (
    "dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, "
    "collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, "
    "multiprocessing_context=None, generator=None, *, prefetch_factor=None, "
    "persistent_workers=False, pin_memory_device='', in_order=True"
)
_PYTHON: dict[str, dict[str, Overloads]] = {
    "torch.nn.": {
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d": "output_size",
        "AdaptiveLogSoftmaxWithLoss": (
            "in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None"
        ),
        "AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d": "output_size, return_indices=False",
        "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout": "p=0.5, inplace=False",
        "AvgPool1d": "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
        "AvgPool2d AvgPool3d": (
            "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
            "divisor_override=None"
        ),
        "BCELoss MultiLabelSoftMarginLoss": "weight=None, size_average=None, reduce=None, reduction='mean'",
        "BCEWithLogitsLoss": (
            "weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None"
        ),
        "BatchNorm1d BatchNorm2d BatchNorm3d": (
            "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, "
            "device=None, dtype=None, *, bias=True"
        ),
        "Bilinear": "in1_features, in2_features, out_features, bias=True, device=None, dtype=None",
        "CELU ELU": "alpha=1.0, inplace=False",
        "CTCLoss": "blank=0, reduction='mean', zero_infinity=False",
        "ChannelShuffle": "groups",
        (
            "CircularPad1d CircularPad2d CircularPad3d ReflectionPad1d ReflectionPad2d "
            "ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
            "ZeroPad3d"
        ): ("padding"),
        "ConstantPad1d ConstantPad2d ConstantPad3d": "padding, value",
        "Conv1d Conv2d Conv3d": (
            "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, "
            "bias=True, padding_mode='zeros', device=None, dtype=None"
        ),
        "ConvTranspose1d ConvTranspose2d ConvTranspose3d": (
            "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,"
            " bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None"
        ),
        "CosineEmbeddingLoss MarginRankingLoss": (
            "margin=0.0, size_average=None, reduce=None, reduction='mean'"
        ),
        "CosineSimilarity": "dim=1, eps=1e-08",
        "CrossEntropyLoss": (
            "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', "
            "label_smoothing=0.0"
        ),
        "CrossMapLRN2d": "size, alpha=0.0001, beta=0.75, k=1",
        "DataParallel": "module, device_ids=None, output_device=None, dim=0",
        "Embedding": (
            "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, "
            "scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, "
            "dtype=None"
        ),
        "EmbeddingBag": (
            "num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
            "mode='mean', sparse=False, _weight=None, include_last_offset=False, padding_idx=None, "
            "device=None, dtype=None"
        ),
        "Flatten": "start_dim=1, end_dim=-1",
        "Fold": "output_size, kernel_size, dilation=1, padding=0, stride=1",
        "FractionalMaxPool2d FractionalMaxPool3d": (
            "kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None"
        ),
        "GELU": "approximate='none'",
        "GLU": "dim=-1",
        "GRUCell LSTMCell": "input_size, hidden_size, bias=True, device=None, dtype=None",
        "GaussianNLLLoss": "*, full=False, eps=1e-06, reduction='mean'",
        "GroupNorm": (
            "num_groups, num_channels, eps=1e-05, affine=True, device=None, dtype=None, *, bias=True"
        ),
        "Hardshrink Softshrink": "lambd=0.5",
        "Hardsigmoid Hardswish Mish ReLU ReLU6 SELU SiLU": "inplace=False",
        "Hardtanh": "min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None",
        "HingeEmbeddingLoss": "margin=1.0, size_average=None, reduce=None, reduction='mean'",
        "HuberLoss": "reduction='mean', delta=1.0",
        "InstanceNorm1d InstanceNorm2d InstanceNorm3d": (
            "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False, "
            "device=None, dtype=None, *, bias=True"
        ),
        "KLDivLoss": "size_average=None, reduce=None, reduction='mean', log_target=False",
        "L1Loss MSELoss MultiLabelMarginLoss SoftMarginLoss": (
            "size_average=None, reduce=None, reduction='mean'"
        ),
        "LPPool1d LPPool2d LPPool3d": "norm_type, kernel_size, stride=None, ceil_mode=False",
        "LayerNorm": (
            "normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None"
        ),
        (
            "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
            "LazyInstanceNorm3d"
        ): (
            "eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None,"
            " *, bias=True"
        ),
        "LazyConv1d LazyConv2d LazyConv3d": (
            "out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
            "padding_mode='zeros', device=None, dtype=None"
        ),
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d": (
            "out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, "
            "dilation=1, padding_mode='zeros', device=None, dtype=None"
        ),
        "LazyLinear": "out_features, bias=True, device=None, dtype=None",
        "LeakyReLU": "negative_slope=0.01, inplace=False",
        "Linear": "in_features, out_features, bias=True, device=None, dtype=None",
        "LinearCrossEntropyLoss": (
            "in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None, "
            "reduction='mean', weight=None, ignore_index=None, label_smoothing=0.0, options=None"
        ),
        "LocalResponseNorm": "size, alpha=0.0001, beta=0.75, k=1.0",
        "LogSoftmax Softmax Softmin": "dim=None",
        "MaxPool1d MaxPool2d MaxPool3d": (
            "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False"
        ),
        "MaxUnpool1d MaxUnpool2d MaxUnpool3d": "kernel_size, stride=None, padding=0",
        "MultiMarginLoss": "p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'",
        "MultiheadAttention": (
            "embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, "
            "kdim=None, vdim=None, batch_first=False, device=None, dtype=None"
        ),
        "NLLLoss": "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'",
        "PReLU": "num_parameters=1, init=0.25, device=None, dtype=None",
        "PairwiseDistance": "p=2.0, eps=1e-06, keepdim=False",
        "PixelShuffle": "upscale_factor",
        "PixelUnshuffle": "downscale_factor",
        "PoissonNLLLoss": (
            "log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean'"
        ),
        "RMSNorm": "normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None",
        "RNNBase": (
            "mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, "
            "bidirectional=False, proj_size=0, device=None, dtype=None"
        ),
        "RNNCell": "input_size, hidden_size, bias=True, nonlinearity='tanh', device=None, dtype=None",
        "RNNCellBase": "input_size, hidden_size, bias, num_chunks, device=None, dtype=None",
        "RReLU": "lower=0.125, upper=0.3333333333333333, inplace=False",
        "SmoothL1Loss": "size_average=None, reduce=None, reduction='mean', beta=1.0",
        "Softplus": "beta=1.0, threshold=20.0",
        "SyncBatchNorm": (
            "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, "
            "process_group=None, device=None, dtype=None, *, bias=True"
        ),
        "Threshold": "threshold, value, inplace=False",
        "Transformer": (
            "d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, "
            "dropout=0.1, activation=..., custom_encoder=None, custom_decoder=None, "
            "layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True, device=None, "
            "dtype=None"
        ),
        "TransformerDecoder": "decoder_layer, num_layers, norm=None",
        "TransformerDecoderLayer TransformerEncoderLayer": (
            "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=..., layer_norm_eps=1e-05,"
            " batch_first=False, norm_first=False, bias=True, device=None, dtype=None"
        ),
        "TransformerEncoder": (
            "encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True"
        ),
        "TripletMarginLoss": (
            "margin=1.0, p=2.0, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean'"
        ),
        "TripletMarginWithDistanceLoss": (
            "*, distance_function=None, margin=1.0, swap=False, reduction='mean'"
        ),
        "Unflatten": "dim, unflattened_size",
        "Unfold": "kernel_size, dilation=1, padding=0, stride=1",
        "Upsample": (
            "size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None"
        ),
        "UpsamplingBilinear2d UpsamplingNearest2d": "size=None, scale_factor=None",
    },
    "torch.nn.Module.": {
        "cuda": "device=None",
        "cpu eval half double float bfloat16 children": "",
        "to_empty": "*, device, recurse=True",
        "zero_grad": "set_to_none=True",
        "train": "mode=True",
        "requires_grad_": "requires_grad=True",
        "type": "dst_type",
        "load_state_dict": "state_dict, strict=True, assign=False",
        "parameters buffers": "recurse=True",
        "named_parameters": "prefix='', recurse=True, remove_duplicate=True",
        "modules": "remove_duplicate=True",
        "apply": "fn",
    },
    "torch.nn.MultiheadAttention.": {
        "forward": (
            "query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, "
            "average_attn_weights=True, is_causal=False"
        ),
    },
    "torch.nn.functional.": {
        "adaptive_avg_pool2d adaptive_avg_pool3d": "input, output_size",
        "affine_grid": "theta, size, align_corners=None",
        "alpha_dropout feature_alpha_dropout": "input, p=0.5, training=False, inplace=False",
        "batch_norm": (
            "input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, "
            "eps=1e-05"
        ),
        "binary_cross_entropy multilabel_soft_margin_loss": (
            "input, target, weight=None, size_average=None, reduce=None, reduction='mean'"
        ),
        "binary_cross_entropy_with_logits": (
            "input, target, weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None"
        ),
        "celu elu": "input, alpha=1.0, inplace=False",
        "cosine_embedding_loss margin_ranking_loss": (
            "input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean'"
        ),
        "cross_entropy": (
            "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
            "reduction='mean', label_smoothing=0.0"
        ),
        "ctc_loss": (
            "log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', "
            "zero_infinity=False"
        ),
        "dropout dropout1d dropout2d dropout3d": "input, p=0.5, training=True, inplace=False",
        "embedding": (
            "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,"
            " sparse=False"
        ),
        "embedding_bag": (
            "input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, "
            "mode='mean', sparse=False, per_sample_weights=None, include_last_offset=False, "
            "padding_idx=None"
        ),
        "fold": "input, output_size, kernel_size, dilation=1, padding=0, stride=1",
        "gaussian_nll_loss": "input, target, var, full=False, eps=1e-06, reduction='mean'",
        "glu": "input, dim=-1",
        "grid_sample": "input, grid, mode='bilinear', padding_mode='zeros', align_corners=None",
        "group_norm": "input, num_groups, weight=None, bias=None, eps=1e-05",
        "gumbel_softmax": "logits, tau=1, hard=False, eps=1e-10, dim=-1",
        "hardsigmoid hardswish mish relu relu6 selu silu": "input, inplace=False",
        "hardtanh": "input, min_val=-1.0, max_val=1.0, inplace=False",
        "hinge_embedding_loss": (
            "input, target, margin=1.0, size_average=None, reduce=None, reduction='mean'"
        ),
        "huber_loss": "input, target, reduction='mean', delta=1.0, weight=None",
        "instance_norm": (
            "input, running_mean=None, running_var=None, weight=None, bias=None, "
            "use_input_stats=True, momentum=0.1, eps=1e-05"
        ),
        "interpolate": (
            "input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
            "recompute_scale_factor=None, antialias=False"
        ),
        "kl_div": "input, target, size_average=None, reduce=None, reduction='mean', log_target=False",
        "l1_loss mse_loss": "input, target, size_average=None, reduce=None, reduction='mean', weight=None",
        "layer_norm": "input, normalized_shape, weight=None, bias=None, eps=1e-05",
        "leaky_relu": "input, negative_slope=0.01, inplace=False",
        "linear_cross_entropy": (
            "input, linear_weight, target, *, linear_bias=None, weight=None, reduction='mean', "
            "ignore_index=None, label_smoothing=0.0, options=None"
        ),
        "local_response_norm": "input, size, alpha=0.0001, beta=0.75, k=1.0",
        "log_softmax softmax softmin": "input, dim=None, _stacklevel=3, dtype=None",
        "lp_pool1d lp_pool2d lp_pool3d": "input, norm_type, kernel_size, stride=None, ceil_mode=False",
        "max_unpool1d max_unpool2d max_unpool3d": (
            "input, indices, kernel_size, stride=None, padding=0, output_size=None"
        ),
        "multi_head_attention_forward": (
            "query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, "
            "bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, "
            "key_padding_mask=None, need_weights=True, attn_mask=None, "
            "use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, "
            "v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, "
            "is_causal=False"
        ),
        "multi_margin_loss": (
            "input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'"
        ),
        "multilabel_margin_loss soft_margin_loss": (
            "input, target, size_average=None, reduce=None, reduction='mean'"
        ),
        "nll_loss": (
            "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'"
        ),
        "normalize": "input, p=2.0, dim=1, eps=1e-12, out=None",
        "pad": "input, pad, mode='constant', value=None",
        "poisson_nll_loss": (
            "input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, "
            "reduction='mean'"
        ),
        "rms_norm": "input, normalized_shape, weight=None, eps=None",
        "rrelu": "input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False",
        "sigmoid softsign tanh tanhshrink": "input",
        "smooth_l1_loss": "input, target, size_average=None, reduce=None, reduction='mean', beta=1.0",
        "threshold": "input, threshold, value, inplace=False",
        "triplet_margin_loss": (
            "anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, "
            "reduce=None, reduction='mean'"
        ),
        "triplet_margin_with_distance_loss": (
            "anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction='mean'"
        ),
        "unfold": "input, kernel_size, dilation=1, padding=0, stride=1",
        "upsample": "input, size=None, scale_factor=None, mode='nearest', align_corners=None",
        "upsample_bilinear upsample_nearest": "input, size=None, scale_factor=None",
    },
    "torch.optim.": {
        "ASGD": (
            "params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0, foreach=None, "
            "maximize=False, differentiable=False, capturable=False"
        ),
        "Adadelta": (
            "params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, foreach=None, *, capturable=False, "
            "maximize=False, differentiable=False"
        ),
        "Adafactor": (
            "params, lr=0.01, beta2_decay=-0.8, eps=(None, 0.001), d=1.0, weight_decay=0.0, *, "
            "foreach=None, maximize=False"
        ),
        "Adagrad": (
            "params, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, "
            "foreach=None, *, maximize=False, differentiable=False, fused=None"
        ),
        "Adam": (
            "params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *, "
            "foreach=None, maximize=False, capturable=False, differentiable=False, fused=None, "
            "decoupled_weight_decay=False"
        ),
        "AdamW": (
            "params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01, amsgrad=False, *, "
            "maximize=False, foreach=None, capturable=False, differentiable=False, fused=None"
        ),
        "Adamax": (
            "params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, foreach=None, *, "
            "maximize=False, differentiable=False, capturable=False"
        ),
        "LBFGS": (
            "params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-07, tolerance_change=1e-09, "
            "history_size=100, line_search_fn=None"
        ),
        "Muon": (
            "params, lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=True, "
            "ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-07, ns_steps=5, adjust_lr_fn=None"
        ),
        "NAdam": (
            "params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, momentum_decay=0.004, "
            "decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, "
            "differentiable=False"
        ),
        "RAdam": (
            "params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, "
            "decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, "
            "differentiable=False"
        ),
        "RMSprop": (
            "params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False, "
            "capturable=False, foreach=None, maximize=False, differentiable=False"
        ),
        "Rprop": (
            "params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, capturable=False, "
            "foreach=None, maximize=False, differentiable=False"
        ),
        "SGD": (
            "params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, "
            "maximize=False, foreach=None, differentiable=False, fused=None"
        ),
        "SparseAdam": "params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, maximize=False",
    },
    "torch.optim.lr_scheduler.": {
        "ChainedScheduler": "schedulers, optimizer=None",
        "ConstantLR": "optimizer, factor=0.3333333333333333, total_iters=5, last_epoch=-1",
        "CosineAnnealingLR": "optimizer, T_max, eta_min=0.0, last_epoch=-1",
        "CosineAnnealingWarmRestarts": "optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1",
        "CyclicLR": (
            "optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode='triangular', "
            "gamma=1.0, scale_fn=None, scale_mode='cycle', cycle_momentum=True, base_momentum=0.8, "
            "max_momentum=0.9, last_epoch=-1"
        ),
        "ExponentialLR": "optimizer, gamma, last_epoch=-1",
        "LRScheduler": "optimizer, last_epoch=-1",
        "LambdaLR MultiplicativeLR": "optimizer, lr_lambda, last_epoch=-1",
        "LinearLR": (
            "optimizer, start_factor=0.3333333333333333, end_factor=1.0, total_iters=5, last_epoch=-1"
        ),
        "MultiStepLR": "optimizer, milestones, gamma=0.1, last_epoch=-1",
        "OneCycleLR": (
            "optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, "
            "anneal_strategy='cos', cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, "
            "div_factor=25.0, final_div_factor=10000.0, three_phase=False, last_epoch=-1"
        ),
        "PolynomialLR": "optimizer, total_iters=5, power=1.0, last_epoch=-1",
        "ReduceLROnPlateau": (
            "optimizer, mode='min', factor=0.1, patience=10, threshold=0.0001, threshold_mode='rel', "
            "cooldown=0, min_lr=0, eps=1e-08"
        ),
        "SequentialLR": "optimizer, schedulers, milestones, last_epoch=-1",
        "StepLR": "optimizer, step_size, gamma=0.1, last_epoch=-1",
    },
    "torch.utils.data.": {
        "DataLoader": _LOADER,
        "Subset": "dataset, indices",
        "ConcatDataset ChainDataset": "datasets",
        "TensorDataset": "*tensors",
        "random_split": "dataset, lengths, generator=...",
        "SequentialSampler": "data_source",
        "RandomSampler": "data_source, replacement=False, num_samples=None, generator=None",
        "SubsetRandomSampler": "indices, generator=None",
        "WeightedRandomSampler": "weights, num_samples, replacement=True, generator=None",
        "BatchSampler": "sampler, batch_size, drop_last",
        "DistributedSampler": (
            "dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False"
        ),
    },
    "torch.optim.Optimizer.": {
        "zero_grad": "set_to_none=True",
        "step": "closure=None",
        "add_param_group": "param_group",
        "load_state_dict": "state_dict",
    },
    "torch.": {
        "no_grad cuda.empty_cache": "",
        "enable_grad": "orig_func=None",
        "inference_mode": "mode=True",
        "set_grad_enabled": "mode",
        "autograd.set_detect_anomaly autograd.anomaly_mode.set_detect_anomaly": "mode, check_nan=True",
        "autocast": "device_type, dtype=None, enabled=True, cache_enabled=None",
        "amp.GradScaler": (
            "device='cuda', init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, "
            "growth_interval=2000, enabled=True"
        ),
        "cpu.amp.autocast cuda.amp.autocast": "enabled=True, dtype=..., cache_enabled=True",
        "cpu.amp.GradScaler cuda.amp.GradScaler": (
            "init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True"
        ),
        "cuda.synchronize": "device=None",
        "cuda.memory._record_memory_history": (
            "enabled='all', context='all', stacks='all', max_entries=..., device=None, clear_history=False, "
            "compile_context=False, global_record_annotations=False, skip_actions=None"
        ),
        "save": (
            "obj, f, pickle_module=..., pickle_protocol=2, _use_new_zipfile_serialization=True, "
            "_disable_byteorder_record=False"
        ),
        "load": (
            "f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args"
        ),
        "compile": (
            "model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, "
            "name=None, disable=False, recompile_limit=None, isolate_recompiles=False, "
            "shapes_spec=None"
        ),
        "manual_seed": "seed",
        "autograd.grad": (
            "outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, "
            "only_inputs=True, allow_unused=None, is_grads_batched=False, materialize_grads=False"
        ),
        "autograd.backward": (
            "tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, "
            "inputs=None"
        ),
        "nn.utils.clip_grad_norm_": (
            "parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None"
        ),
        "nn.utils.clip_grad_value_": "parameters, clip_value, foreach=None",
        "nn.parallel.DistributedDataParallel": (
            "module, device_ids=None, output_device=None, dim=0, broadcast_buffers=None, "
            "init_sync=True, process_group=None, bucket_cap_mb=None, find_unused_parameters=False, "
            "check_reduction=False, gradient_as_bucket_view=False, static_graph=False, "
            "delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None,"
            " device_mesh=None, skip_all_reduce_unused_params=False, bucket_cap_mb_list=None, "
            "batched_grad_copy=False, forward_sync_buffers=None"
        ),
        "nn.DataParallel": "module, device_ids=None, output_device=None, dim=0",
        "distributed.fsdp.FullyShardedDataParallel": (
            "module, process_group=None, sharding_strategy=None, cpu_offload=None, auto_wrap_policy=None, "
            "backward_prefetch=..., mixed_precision=None, ignored_modules=None, param_init_fn=None, "
            "device_id=None, sync_module_states=False, forward_prefetch=False, limit_all_gathers=True, "
            "use_orig_params=False, ignored_states=None, device_mesh=None"
        ),
        "distributed.fsdp.fully_shard": (
            "module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None, mp_policy=..., "
            "offload_policy=..., ignored_params=None, dp_mesh_dims=None"
        ),
        "utils.checkpoint.checkpoint": (
            "function, *args, use_reentrant=None, context_fn=..., determinism_check='default', "
            "debug=False, early_stop=True, **kwargs"
        ),
        "utils.checkpoint.checkpoint_sequential": (
            "functions, segments, input, use_reentrant=None, **kwargs"
        ),
        "einsum": "*args",
        "split": "tensor, split_size_or_sections, dim=0",
        "norm": "input, p='fro', dim=None, keepdim=False, out=None, dtype=None",
        "stft": (
            "input, n_fft, hop_length=None, win_length=None, window=None, center=True, "
            "pad_mode='reflect', normalized=False, onesided=None, return_complex=None, "
            "align_to_window=None"
        ),
        "autograd.set_detect_anomaly": "mode, check_nan=True",
        "autograd.detect_anomaly": "check_nan=True",
        "use_deterministic_algorithms": "mode, *, warn_only=False",
        "set_float32_matmul_precision": "precision",
    },
    "torch.Tensor.": {
        "backward": "gradient=None, retain_graph=None, create_graph=False, inputs=None",
        "norm": "p='fro', dim=None, keepdim=False, dtype=None",
        "split": "split_size, dim=0",
        "unique": "sorted=True, return_inverse=False, return_counts=False, dim=None",
        "register_hook": "hook",
    },
}

# What every factory of torch takes behind its own parameters.
_NEW = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
_SIZED = f"out=None, {_NEW}"
_LIKE = f"memory_format=None, {_NEW}"
_CONV = "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1"
_CONV_TRANSPOSE = "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1"
_POOL = "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"
_DEVICE_DTYPE = "device: device | str | number | none = None, dtype: dtype | none = None"
_MAX_POOL = "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False"

_NATIVE: dict[str, dict[str, Overloads]] = {
    "torch.": {
        "rand randn": (f"*size, generator=None, {_SIZED}", f"size, *, generator=None, {_SIZED}"),
        "zeros ones": (f"*size, {_SIZED}", f"size, *, {_SIZED}"),
        "empty": (f"*size, memory_format=None, {_SIZED}", f"size, *, memory_format=None, {_SIZED}"),
        "full": f"size, fill_value, *, out=None, {_NEW}",
        "randint": (
            f"high, size, *, generator=None, out=None, {_NEW}",
            f"low, high, size, *, generator=None, out=None, {_NEW}",
        ),
        "randperm": f"n, *, generator=None, out=None, {_NEW}",
        "arange": (f"end, *, out=None, {_NEW}", f"start, end, step=1, *, out=None, {_NEW}"),
        "linspace": f"start, end, steps, *, out=None, {_NEW}",
        "logspace": f"start, end, steps, base=10.0, *, out=None, {_NEW}",
        "eye": (f"n, *, out=None, {_NEW}", f"n, m, *, out=None, {_NEW}"),
        "tensor": "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
        "as_tensor": "data, dtype=None, device=None",
        "asarray": "obj, *, dtype=None, device=None, copy=None, requires_grad=False",
        "from_numpy": "ndarray",
        "scalar_tensor": f"s, *, {_NEW}",
        "zeros_like ones_like empty_like rand_like randn_like": f"input, *, {_LIKE}",
        "full_like": f"input, fill_value, *, {_LIKE}",
        "randint_like": (f"input, high, *, {_LIKE}", f"input, low, high, *, {_LIKE}"),
        "normal": (
            "mean, std=1.0, *, generator=None, out=None",
            f"mean, std, size, *, generator=None, out=None, {_NEW}",
        ),
        "bernoulli": ("input, *, generator=None, out=None", "input, p, *, generator=None"),
        "multinomial": "input, num_samples, replacement=False, *, generator=None, out=None",
        "tril_indices triu_indices": f"row, col, offset=0, *, {_NEW}",
        "cat concat concatenate": "tensors, dim=0, *, out=None",
        "stack": "tensors, dim=0, *, out=None",
        "hstack vstack dstack column_stack row_stack": "tensors, *, out=None",
        "where": ("condition", "condition, input, other, *, out=None"),
        "nonzero": "input, *, out=None, as_tuple=False",
        "masked_select": "input, mask, *, out=None",
        "bincount": "input, weights=None, minlength=0",
        "repeat_interleave": (
            "repeats: tensor, *, output_size=None",
            "input, repeats, dim=None, *, output_size=None",
        ),
        "softmax log_softmax": "input, dim, dtype=None, *, out=None",
        "matmul": "input, other, *, out=None",
        "bmm": "input, mat2, *, out=None",
    },
    # Each takes sizes, or the data to copy.
    "": {
        " ".join(
            f"{package}.{kind}Tensor"
            for package in ("torch", "torch.cuda")
            for kind in (
                "Float",
                "Double",
                "Half",
                "BFloat16",
                "Byte",
                "Char",
                "Short",
                "Int",
                "Long",
                "Bool",
            )
        ): ("*sizes: number", "data: size | tensor | ndarray, *, device=None"),
    },
    "torch.nn.": {
        "LSTM": (
            "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,"
            " bidirectional=False, proj_size=0, device=None, dtype=None"
        ),
        "GRU": (
            "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,"
            " bidirectional=False, device=None, dtype=None"
        ),
        "RNN": (
            "input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False,"
            " dropout=0.0, bidirectional=False, device=None, dtype=None"
        ),
        "Sequential": "*args",
        "ModuleList ParameterList": "modules=None",
        "ModuleDict": "modules=None",
        "Identity": "*args, **kwargs",
        "Parameter": "data=None, requires_grad=True",
    },
    "torch.nn.Module.": {
        "to": (
            f"{_DEVICE_DTYPE}, non_blocking: bool = False, *, memory_format=None",
            "dtype: dtype, non_blocking: bool = False, *, memory_format=None",
            "tensor: tensor, non_blocking: bool = False, *, memory_format=None",
        ),
    },
    "torch.nn.functional.": {
        "conv1d conv2d conv3d": _CONV,
        "conv_transpose1d conv_transpose2d conv_transpose3d": _CONV_TRANSPOSE,
        "linear": "input, weight, bias=None",
        "bilinear": "input1, input2, weight, bias=None",
        "avg_pool1d": _POOL,
        "avg_pool2d avg_pool3d": f"{_POOL}, divisor_override=None",
        "max_pool1d max_pool2d max_pool3d": _MAX_POOL,
        "gelu": "input, *, approximate='none'",
        "one_hot": "tensor, num_classes=-1",
        "scaled_dot_product_attention": (
            "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *,"
            " scale=None, enable_gqa=False"
        ),
    },
    "torch.Tensor.": {
        "to": (
            f"{_DEVICE_DTYPE}, non_blocking: bool = False, copy: bool = False, *, memory_format=None",
            "dtype: dtype, non_blocking: bool = False, copy: bool = False, *, memory_format=None",
            "other: tensor, non_blocking: bool = False, copy: bool = False, *, memory_format=None",
        ),
        "cuda": "device=None, non_blocking=False, memory_format=...",
        "cpu": "memory_format=...",
        "numpy": "*, force=False",
        "item tolist detach detach_ zero_ dim numel": "",
        "clone": "*, memory_format=None",
        "copy_": "other, non_blocking=False",
        "contiguous": "memory_format=...",
        "fill_": "value",
        "masked_fill masked_fill_": "mask, value",
        "normal_": "mean=0, std=1, *, generator=None",
        "requires_grad_": "requires_grad=True",
        "type": "dtype=None, non_blocking=False",
        "new_tensor": "data, dtype=None, device=None, requires_grad=False, pin_memory=False",
        "new_zeros new_ones new_empty": (f"*size, {_NEW}", f"size, *, {_NEW}"),
        "new_full": f"size, fill_value, *, {_NEW}",
        "repeat_interleave": "repeats, dim=None, *, output_size=None",
        "softmax log_softmax": "dim, dtype=None",
        "size": "dim=None",
        "mean sum": (
            "*, dtype=None",
            "dim, keepdim=False, *, dtype=None",
        ),
    },
}

# Frameworks: what the rules ask for, by keyword, as people write it; ``**others`` stands for the rest.
_FRAMEWORKS: dict[str, dict[str, Overloads]] = {
    "transformers.": {
        "TrainingArguments Seq2SeqTrainingArguments": (
            "output_dir=None, *, per_device_train_batch_size=8, per_device_eval_batch_size=8,"
            " gradient_accumulation_steps=1, gradient_checkpointing=False, dataloader_drop_last=False,"
            " dataloader_num_workers=0, dataloader_pin_memory=True, dataloader_persistent_workers=False,"
            " dataloader_prefetch_factor=None, fp16=False, bf16=False, tf32=None, torch_compile=False,"
            " optim=..., no_cuda=False, use_cpu=False, **others"
        ),
        "Trainer Seq2SeqTrainer": (
            "model=None, args=None, data_collator=None, train_dataset=None, eval_dataset=None, **others"
        ),
    },
    "lightning.": {
        "Trainer": (
            "*, accelerator='auto', strategy='auto', devices='auto', num_nodes=1, precision=None,"
            " max_epochs=None, accumulate_grad_batches=1, gradient_clip_val=None, benchmark=None,"
            " deterministic=None, inference_mode=True, detect_anomaly=False, profiler=None, **others"
        ),
    },
    "torchdata.stateful_dataloader.": {
        "StatefulDataLoader": f"{_LOADER}, snapshot_every_n_steps=1",
    },
    "torch_geometric.loader.": {
        "DataLoader": "dataset, batch_size=1, shuffle=False, follow_batch=None, exclude_keys=None, **kwargs",
    },
    "accelerate.": {
        "Accelerator": (
            "device_placement=True, split_batches=..., mixed_precision=None,"
            " gradient_accumulation_steps=1, cpu=False, **others"
        ),
    },
}


class _Signatures(Mapping[str, Signature]):
    """Qualified name → signature, parsed when it is first asked for."""

    def __init__(self, *tables: dict[str, dict[str, Overloads]]) -> None:
        self._texts = {
            prefix + name: (texts,) if isinstance(texts, str) else texts
            for table in tables
            for prefix, family in table.items()
            for names, texts in family.items()
            for name in names.split()
        }

    def __getitem__(self, name: str) -> Signature:
        return parse_signature(*self._texts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


SIGNATURES: Mapping[str, Signature] = _Signatures(_PYTHON, _NATIVE, _FRAMEWORKS)
"""The signature of every function, class and method known, by the public name that reaches it."""
