"""What names suggest: words are found however an identifier is spelt, and words that look alike are not."""

import pytest

from torchlint.semantics import lexicon
from torchlint.semantics.lexicon import Role, asks, begins, denotes, ends, has, words


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("val_loader", ("val", "loader")),
        ("valLoader", ("val", "loader")),
        ("ValLoader", ("val", "loader")),
        ("VAL_LOADER", ("val", "loader")),
        ("valloader", ("val", "loader")),
        ("_val__loader_", ("val", "loader")),
        ("self.val_loader", ("self", "val", "loader")),
        ("DataLoaders", ("data", "loader")),
        ("HTMLParser", ("html", "parser")),
        ("numGPUs", ("num", "gpu")),
        ("device_ids", ("device", "id")),
        ("fp16", ("fp", "16")),
        ("optimizerG", ("optimizer", "g")),
        ("optimizer_G2", ("optimizer", "g", "2")),
        ("losses", ("loss",)),
        ("batches", ("batch",)),
        ("accuracies", ("accuracy",)),
        ("gpus", ("gpu",)),
        ("betas", ("beta",)),
        ("seqlen", ("seq", "len")),
        ("numSteps", ("num", "step")),
        ("numsteps", ("num", "step")),
        ("boxes", ("box",)),
        ("", ()),
        ("_", ()),
    ],
)
def test_an_identifier_is_split_into_words(name: str, expected: tuple[str, ...]) -> None:
    assert words(name) == expected


@pytest.mark.parametrize(
    "word", ["loss", "bias", "axis", "status", "process", "progress", "class", "eps", "pos", "canvas", "this"]
)
def test_a_word_that_only_ends_like_a_plural_stays(word: str) -> None:
    assert words(word) == (word,)


@pytest.mark.parametrize(
    "word", ["network", "latest", "contest", "dictionary", "evaluate", "setting", "offset"]
)
def test_a_word_of_its_own_is_not_divided(word: str) -> None:
    assert words(word) == (word,)


ROLES = {
    Role.EVALUATION: (
        "run_eval evalLoader val_loss evaluate validation",
        "value interval medieval evaluator",
    ),
    Role.TEST: ("test_epoch testset do_test", "latest attest contest protest"),
    Role.HELD_OUT: ("dev_set valid_loader held_out", "device develop invalid"),
    Role.PREDICTION: ("predict predict_step", "predictor predicate"),
    Role.INFERENCE: ("infer run_inference extract_features", "inferior feature"),
    Role.GENERATION: ("generate generate_text", "generator general"),
    Role.DECODING: ("decode decode_latents", "decoder"),
    Role.SAMPLING: ("sample p_sample", "sampler resampled example"),
    Role.TRAINING: ("train train_epoch finetune fine_tune fitModel", "trainable constrain strain benefit"),
    Role.LEARNING: ("learn optimize_model", "learner optimizer optimal"),
    Role.PENALTY: ("gradient_penalty", "penalize"),
    Role.STEP: ("step update_weights", "stepwise footstep"),
    Role.BACKPROPAGATION: ("do_backward backprop", "background backbone"),
    Role.INPUT_GRADIENT: ("pgd_attack grad_cam gradcam hessian", "gradient attached"),
    Role.GUIDANCE: ("guided_step guidance", "guideline enforce"),
    Role.NO_GRADIENT: ("no_grad nograd eval_mode", "grad mode"),
    Role.LOADING: ("load_weights restore", "loader payload"),
    Role.MAKING: ("build_model make_loader set_up", "builder remake target"),
    Role.CHOOSING: ("choose_action select", "selector selected"),
    Role.BEGINNING: ("before_epoch setup", "starter"),
    Role.SAVING: ("save_image dump", "saver"),
    Role.DRAWING: ("plot_curve visualize visualise", "revision vision"),
    Role.RENDERING: ("render render_rays", "surrender"),
    Role.PLOTTING: ("plot_curve visualize_batch plotter", "exploit vision render"),
    Role.EXPORT: ("export_onnx", "exporter"),
    Role.LOGGING: ("log_metrics print_loss", "logits login printer"),
    Role.PROGRESS: ("pbar progress_bar tqdm", "barrier"),
    Role.STREAMER: ("streamer text_streamer", "stream streaming"),
    Role.MEASUREMENT: ("benchmark warmup_run latencies measure_fps", "times workbench"),
    Role.DEBUGGING: ("debug verbose dry_run anomaly_mode", "bug"),
    Role.PROFILING: ("profile profiler", "prolific"),
    Role.DUMMY: ("dummy_loader overfit fast_dev_run", "dumb overfull"),
    Role.WRAPPING: ("auto_wrap shard_model fsdp2", "wrapper unsharded"),
    Role.RATIO: ("loss_scale mix_ratio", "scaler factory rational"),
    Role.SHARDING: ("shard_data workers splits", "workable splitter"),
    Role.ORDERING: ("shuffle keep_item rng", "keeper drawing"),
    Role.FETCHING: ("fetch get_item read_lines", "forget ready widget"),
    Role.COLLATION: ("collate_fn Collator worker_init_fn", "collateral"),
    Role.CLEARING: ("zero_grad clear reset_parameters", "cleared preset"),
    Role.DISCARDING: ("delete_model release unload", "deleted freeze"),
    Role.MODEL: ("model self.net network", "remodel netto internet"),
    Role.POLICY: ("policy actor critic", "factor critical"),
    Role.NETWORK: ("unet backbone", "net"),
    Role.MODEL_PART: ("text_encoder decoder head", "encode header"),
    Role.COPY: ("ema_model teacher target_net", "teach"),
    Role.OPTIMIZER: ("optimizer optim_g opt", "option optimal adopt"),
    Role.SCALER: ("grad_scaler", "scale"),
    Role.SCHEDULER: ("lr_scheduler warmup", "lrelu"),
    Role.LOSS: ("loss lossG total_losses", "lossless gloss"),
    Role.LOSS_TERM: ("loss_ce loss_g", "celoss"),
    Role.CRITERION: ("criterion loss_fn lossfn", "loss criticism"),
    Role.STOPPING: ("early_stop", "top"),
    Role.METRIC: ("metrics AverageMeter", "metrical parameter"),
    Role.SCORE: ("accuracy", "inaccurate"),
    Role.RECORD: ("history stats", "prehistory status"),
    Role.LOADER: ("train_loader dataloader dl batches", "load download batch"),
    Role.DATASET: ("dataset data_set train_ds", "data"),
    Role.BATCH: ("batch batches", "batched"),
    Role.DATA: ("data trainset iter", "update iterate"),
    Role.PREPROCESSING: ("tokenizer preprocess", "token process"),
    Role.TRANSFORM: ("transform augment normalize pooling", "transformer"),
    Role.DEVICE: ("device local_rank gpu device_id", "rank"),
    Role.ACCELERATOR: ("cuda n_gpus", "cudnn"),
    Role.HOST: ("host x_host", "ghost"),
    Role.CPU: ("cpu cpu_state", "cput"),
    Role.OPTIONS: ("args self.cfg opts", "argmax"),
    Role.ENVIRONMENT: ("env train_envs", "environ envelope"),
    Role.WORLD: ("game environment", "worldwide"),
    Role.ACTION: ("select_action act", "activation reaction"),
    Role.TRAINER: ("trainer engine", "train"),
    Role.CONTEXT: ("ctx state callbacks", "statement"),
    Role.FILE: ("file writer", "profile"),
    Role.FACTOR: ("lambda_gp weight coef", "weighted"),
    Role.ITERATION: ("step n_iter batch_iter", "iterate"),
    Role.INDEX: ("i batch_idx indices", "in"),
    Role.INDICES: ("indices slot_ids b_inds req_idx", "grids kids indicator"),
    Role.EPISODE: ("episode episodes", "episodic"),
    Role.COUNT: ("count counter", "account country"),
    Role.SIZE: ("batch_size width d_model", "resize"),
    Role.MAGNITUDE: ("size sizes", "resized"),
    Role.LENGTH: ("length seq_lens", "lengthy lend"),
    Role.EPOCH: ("epoch ep n_epochs", "step"),
    Role.RUN: ("run trial folds", "prune truncate"),
    Role.ACCUMULATION: ("accum_steps micro_batch grad_acc", "accuracy"),
    Role.BEST: ("best_acc lowest", "bestow"),
    Role.EXTREME: ("min_loss max", "minute maxim"),
    Role.NEIGHBOUR: ("prev last_loss", "lasting nextcloud"),
    Role.CLOCK: ("now tic start_time", "know"),
    Role.DISTRIBUTED: ("world_size rank is_ddp is_main_process", "distance process_batch"),
    Role.BUCKETING: ("BucketSampler group_by_length max_tokens balanced", "pack_padded_sequence length"),
    Role.ADAPTATION: ("lora_rank requires_grad_ freeze_encoder", "adapted grad"),
    Role.TRANSFORMER: ("GPT2 BertModel TransformerDecoderLayer vit_b", "decoder clip_grad_norm_"),
    Role.EXCHANGE: ("all_reduce_losses reduce_tensor mean_across_ranks", "all_reduce reduce_lr"),
    Role.PRECISION: ("fp16 use_amp bfloat16", "lamp fp32"),
    Role.MEMORY: ("vram memory offload", "member"),
    Role.CHECKPOINT: ("ckpt checkpoints pretrained", "check"),
    Role.VERB: ("use_x compute", "user computer"),
    Role.COMPUTING: ("compute measure", "computer"),
    Role.AUXILIARY: ("is_training mode", "his model"),
    Role.TYPE: ("dtype schema", "typed"),
    Role.NOISE: ("noise", "noisy"),
    Role.FUNCTION: ("fn func", "functional"),
    Role.PARAMETER: ("param weight bias", "parametric"),
    Role.PARAMETERS: ("params model_state_dict", "param state"),
    Role.GRADIENT: ("grad flat_gradients", "gradual"),
    Role.TRANSLATION: ("translate", "translator"),
    Role.ANOMALY: ("has_nan detect_anomaly", "nano"),
    Role.CLIPPING: ("clip_grad grad_norm", "eclipse normal"),
    Role.DECAY: ("decay momentum", "decade"),
    Role.WATCHING: ("watch timer", "swatch"),
    Role.LANGUAGE_MODEL: ("lm t5 decoder", "llama"),
    Role.ONCE: ("run_once", "concept"),
    Role.WARMUP: ("warm_up warmup", "swarm"),
    Role.PURE: ("isinstance len_sum max", "maximum"),
    Role.SEARCH: ("search find_size", "research"),
    Role.SYNCHRONIZATION: ("sync hard_update", "async"),
    Role.SWITCHING: ("set_mode on_epoch_end", "model one"),
    Role.FINAL: ("last_step final", "finally"),
    Role.NUMBER: ("num_layers n", "number"),
    Role.CARRIED: ("hidden_state rnn recurrent", "state hide"),
    Role.RANDOMNESS: ("randn_like sample normal_", "brand abnormal"),
    Role.ALGORITHM: ("AdamW SGD FusedLAMB", "madam"),
    Role.FLOAT16: ("half fp16 float16", "bf16 float32"),
    Role.BFLOAT16: ("bf16 bfloat16", "fp16"),
    Role.TENSOR_FLOAT: ("allow_tf32 set_float32_matmul_precision", "precision float32"),
    Role.REDUCED_PRECISION: ("use_amp fp16 torch_dtype loss_scale", "lamp dtype scale"),
    Role.RETRIEVAL_METRIC: ("recall_at_k average_precision", "precision"),
    Role.SECOND_DERIVATIVE: ("grad_penalty hessian", "penalty gradient"),
    Role.SPARSE_GRAPH: ("edge_index adj", "edge adjust"),
    Role.TRACING: ("onnx_trace is_tracing torch.jit.is_scripting", "trace"),
    Role.STARTUP: ("compile_time load_time warmup first_batch traced", "track average total"),
    Role.LAUNCH: ("launch_ms overhead no_sync", "lunch sync"),
    Role.DETECTION: ("yolov5 fasterrcnn_resnet50_fpn detector", "same samples"),
    Role.GENERATING: ("generator generate_text", "general gender"),
    Role.PIPELINE: ("pipe self.pipeline", "piper"),
    Role.DIFFUSION: ("unet text_encoder_2 vae", "encoder text_decoding"),
    Role.NOISE_LEVEL: ("sigmas alphas_cumprod _beta", "alphabet better"),
    Role.CONVERSION: ("merge_weights _unfuse quantize", "emerge loader quantity"),
    Role.INITIALIZATION: ("init_weights initialize_model _initialise", "initial finite"),
    Role.DETERMINISM: ("set_deterministic reproducible", "seed_all"),
    Role.DOUBLE: ("use_float64 fp64 dtype", "float fp16 doubtful"),
    Role.SENDING: ("to_device batch_to_device to_cuda", "device_to towards"),
    Role.OCCASION: ("should_log is_last last_batch has_nan loss_improved", "log_scale last_loss is_nano"),
    Role.PLACE_IN_PIPELINE: ("is_first_rank is_last_stage", "is_first last_batch rank"),
    Role.SPARING: ("offload_features low_vram keep_on_cpu", "vram cpu on_cpu"),
    Role.CACHE: ("empty_cache clean", "cleaner nonempty"),
    Role.HARDWARE: ("use_cuda device accelerator", "accelerate devise"),
    Role.EMPTYING: ("empty_cache empty_gpu_cache", "cache empty cache_empty"),
    Role.LOGGER: ("self.logger SummaryWriter", "log write"),
    Role.NORMALIZATION: ("bn1 BatchNorm2d norm_layer", "normal bnb"),
    Role.LAYER: ("ResBlock MyLSTM EncoderLayer", "Layered Blocked"),
    Role.VOCABULARY: ("vocab_size num_tokens lm_head embed_tokens wte", "token vocal words"),
    Role.PADDED_VOCABULARY: ("padded_vocab_size pad_vocab", "vocab_size pad"),
    Role.PRETRAINED: ("pretrained glove.6B.50d word2vec", "pretrain trained"),
    Role.WRAPPER: ("ModelWrapper WrappedModel ONNXExport", "Wrapping expert"),
    Role.STAND_IN: ("forward_hook monkeypatch new_forward wrapped", "forward patchify renewed_forward"),
    Role.COMPILATION: ("disable_compile dynamo_off", "complicated pile"),
    Role.LENGTH_GROUPING: ("BucketSampler group_by_length", "max_length packed balanced"),
    Role.PER_PARAMETER: ("ema_params grads state_dict", "state graduate"),
    Role.ATTENTION: ("SelfAttention attn patch_size", "attend patchy"),
    Role.FULLY_CONVOLUTIONAL: (
        "resnet50 ResNet18 resnetv2_50 UNet fcn_resnet50",
        "vgg16 ConvNet respond",
    ),
    Role.CONVOLUTIONAL: ("vgg16_bn LeNet5 TextCNN CycleGAN SENet", "resnet50 rcnn lens"),
    Role.NOT_CONVOLUTIONAL: ("ViT vit_b_16 TextCNN resnet1d retinanet", "resnet2d context vital"),
    Role.MULTIPLYING: ("ViT BertModel open_clip text_encoder", "clip_grad_norm clip context"),
    Role.PICTURE: ("image_size cifar10 ImageFolder torchvision", "imagine vision"),
    Role.PICTURE_SIZE: ("image_size imsize cropSize img_h resolution", "image size hidden_size solution"),
    Role.STYLE_TRANSFER: ("style-image style_weight", "style stylegan"),
    Role.ENGINE_STEP: (
        "ForwardBatch ModelWorkerBatch SamplingBatchInfo EagleVerifyInput PoolingMetadata scheduler_output",
        "batch train_batch metadata batch_info model_input forward_pass",
    ),
    Role.ATTENTION_BACKEND: ("FlashInferAttnBackend FlashAttentionImpl", "attention backend"),
    Role.PASS_INPUT: ("hidden_states positions logits is_multimodal", "states position output"),
    Role.NOISE_PREDICTION: ("model_output noise_pred", "output model_input noise"),
    Role.MEDIA_ENCODING: ("get_image_features get_multimodal_embeddings", "image_feature get_image_size"),
    Role.BOTH_PASSES: ("forward_backward_no_pipelining forward_and_backward", "forward backward"),
    Role.ENGINE_START: ("load_model load_weights profile_run", "load model profile profiled_run"),
    Role.REHEARSAL: ("capture_graph dummy_run warmup", "captured warm_up warm"),
    Role.VARIABLE_SHAPE: ("vocab_size multi_scale boxes collate_boxes", "box anchor length"),
    Role.CALIBRATION: ("calibrate_scales run_calibration is_calibrating", "caliber scale"),
    Role.RECORDING: ("take_snapshot record trace_memory", "recall retraced"),
}


@pytest.mark.parametrize("role", Role)
def test_a_role_has_its_words_and_none_that_look_alike(role: Role) -> None:
    within, without = ROLES[role]
    assert [name for name in within.split() if not has(name, role)] == []
    assert [name for name in without.split() if has(name, role)] == []


def test_no_two_roles_are_the_same_words() -> None:
    assert len({role.value for role in Role}) == len(Role.__members__)


def test_a_role_lists_its_words_in_the_singular_and_once() -> None:
    for role in Role:
        entries = role.value.split()
        assert len(entries) == len(set(entries)), role
        assert all(entry == entry.lower() for entry in entries), role


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[
            ("train_step", True),
            ("run_train", True),
            ("do_train", True),
            ("_maybe_train", True),
            ("_train", True),
            ("trains_x", False),
        ],
        *[("pre_trained", False), ("after_train", False), ("", False)],
    ],
)
def test_a_function_begins_with_its_verb(name: str, expected: bool) -> None:
    assert begins(name, Role.TRAINING) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train_loader", True),
        ("loader2", True),
        ("loader_a", True),
        ("loader_a2", True),
        ("Loader2d", True),
        ("loader_10_b_3", True),
        ("loaders", True),
        ("loader_config", False),
    ],
)
def test_a_thing_ends_with_its_noun(name: str, expected: bool) -> None:
    assert ends(name, Role.LOADER) is expected


@pytest.mark.parametrize(
    ("name", "expected"), [("device", True), ("devices", False), ("use_gpu", False), ("set_device", False)]
)
def test_one_thing_is_neither_several_nor_a_function(name: str, expected: bool) -> None:
    assert denotes(name, Role.DEVICE) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[("training", True), ("is_train", True), ("train_mode", True), ("TRAIN", True), ("mode", False)],
        *[("train_loader", False), ("is_trained", False)],
    ],
)
def test_a_flag_asks_for_one_thing_only(name: str, expected: bool) -> None:
    assert asks(name, Role.TRAINING) is expected


@pytest.mark.parametrize(
    ("question", "within", "without"),
    [
        ("names_device", "device self_device gpu local_rank", "devices use_cuda get_device"),
        (
            "asks_for_accelerator",
            "use_cuda cuda is_gpu cuda_available use_the_gpu",
            "gpu no_cuda use_cpu cuda_rng",
        ),
        ("names_loader", "loader train_loader valLoader data_loader test_dl", "image_loader loaders dl"),
        ("names_loaders", "loaders dataloaders val_loaders loader_dict dicLoader", "image_loaders parsers"),
        (
            "names_model",
            "model net_g policy netG unet module",
            "build_model train_model models d_model Model",
        ),
        (
            "names_criterion",
            "criterion loss_fn criterion_gan",
            "stopping_criterion criterion_fn get_criterion",
        ),
        ("names_loss", "loss d_loss loss_ce lossG", "losses compute_loss use_aux_loss loss_weight loss_fn"),
        (
            "names_optimizer",
            "optimizer opt optim_encoder optimizerG",
            "optimizer_class lr_scheduler optimizers",
        ),
    ],
)
def test_a_variable_is_called_after_what_it_is(question: str, within: str, without: str) -> None:
    asked = getattr(lexicon, question)
    assert [name for name in within.split() if not asked(name)] == []
    assert [name for name in without.split() if asked(name)] == []


def test_no_name_suggests_nothing() -> None:
    assert not has(None, *Role)
    assert lexicon.roles(None) == lexicon.roles("") == frozenset()
