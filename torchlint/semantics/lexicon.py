"""What the names that users choose suggest: the only place that guesses from them.

An identifier is split into words once, whichever way it is spelt: ``val_loader``, ``valLoader`` and
``valloader`` are the same two words. A role is a set of words that suggest the same thing, and a question
asks whether an identifier has one of them: anywhere (`has`), in front, where the verb of a function stands
(`begins`), or at the end, where the noun of a compound stands (`ends`).

A name is the weakest evidence there is. It may pick between readings that the flow of a program leaves
open; it never makes a finding by itself. ``python -m benchmarks.lexicon`` measures how often each role is
right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from torchlint.semantics.enums import IdentityEnum


class Role(IdentityEnum):
    """What a name can suggest; the value lists the words, spelt as in identifiers.

    Words are given in the singular, unless one thing has a name in the plural. One that ends in ``*`` stands
    for all that begin with it, and one with an underscore for several words in this order, or run together.
    Two words of the lexicon that are run together are found as well: ``trainloader``.
    """

    # --- what a function or a region of a program is for

    EVALUATION = "eval evaluate evaluation val validate validation estimate_loss"
    """Measures a model on data that it is not trained on, or is such data."""

    TEST = "test testing"
    """Runs a model, or the program itself, to see whether it works; or is data for that."""

    HELD_OUT = "dev valid holdout held_out"
    """Is data that is kept from training; also called after `EVALUATION` or `TEST`."""

    BOTH_PASSES = "forward_backward forward_and_backward"
    """Runs a model forward and backward: one step of training, or a part of it."""

    PREDICTION = "predict predicting"
    """Uses a trained model."""

    GENERATION = "generate"
    """Makes sequences or pictures with a trained model."""

    SAMPLING = "sample"
    """Draws from a distribution or a data set; what does it with a model generates."""

    TRAINING = (
        "train training pretrain pretraining fit finetune fine_tune pre_train forward_train"
        " model_train main_train start_train"
    )
    """Changes a model with data."""

    LEARNING = "learn learning adapt adapting optimize optimise optimization"
    """Also changes a model, under names that many other things have."""

    STEP = "step update optimize optimise learn iteration"
    """Takes one step of training each time it is called."""

    BACKPROPAGATION = "backward backprop backpropagate backpropagation"
    """Computes gradients."""

    INPUT_GRADIENT = (
        "attack attacker atk adversary adversarial perturb fgsm ifgsm pgd saliency gradcam grad_cam"
        " attribute attributor explain explainer influence integrated_gradient input_gradient hessian"
        " jacobian hvp deepdream deep_dream"
    )
    """Differentiates with respect to the input, outside of training."""

    LOADING = "load restore resume download"
    """Reads what was stored."""

    MAKING = "get make build create init setup set_up prepare configure define construct instantiate"
    """Makes what it is called after: ``build_criterion``."""

    CHOOSING = "choose select pick"
    """Takes one of several: ``choose_action``."""

    BEGINNING = "before begin start initialize initialise init setup set_up prepare configure"
    """Runs once, before something else."""

    SAVING = "save dump write serialize record capture"
    """Stores something outside of the process."""

    DRAWING = "plot draw render vis visuali* show"
    """Makes a picture for people."""

    PLOTTING = "plot plotting plotter visuali*"
    """Makes a picture of numbers for people; what renders may be a part of a model."""

    RENDERING = "render"
    """Makes a picture: one for people, or what a model computes."""

    EXPORT = "export"
    """Turns a model into another format."""

    LOGGING = "log logger logging print report"
    """Tells people how it goes."""

    PROGRESS = "tqdm bar pbar progress"
    """Shows how far a loop has come."""

    STREAMER = "streamer"
    """Hands on what is generated as soon as there is some."""

    MEASUREMENT = (
        "bench* profil* latenc* throughput measur* timeit timing speed speedup fps warm_up warming warmup"
    )
    """Measures times."""

    DEBUGGING = "debug debugger debugging verbose verbosity diagnos* anomal* sanity smoke dry_run"
    """Looks for mistakes, or runs a program only to see that it runs."""

    DUMMY = "dummy mock mocked boring overfit overfitting fast_dev_run"
    """Stands in for the real thing, or runs a program only to see that it runs."""

    WRAPPING = "shard fsdp parallelize parallelise wrap auto_wrap"
    """Puts a part of a model into a wrapper."""

    PROFILING = "profile profiler profiling"
    """Records what a program spends its time on."""

    RECORDING = "record recording snapshot trace tracing history"
    """Keeps what happened, to be looked at later."""

    COLLATION = "collate collator collation collating worker_init"
    """Runs in the workers of a loader: makes a batch of samples, or sets a worker up."""

    CLEARING = "zero clear reset"
    """Sets something back to nothing."""

    DISCARDING = "delete destroy dispose free release remove unload"
    """Lets go of something as a whole."""

    # --- what a value is

    MODEL = "model net network"
    """A whole model."""

    POLICY = "policy actor critic"
    """A model that chooses actions, or judges them."""

    MODEL_PART = (
        "encoder decoder backbone head neck trunk stem unet vae transformer classifier generator "
        "discriminator projector projection proj embedding visual feature fc"
    )
    """A layer or a larger part of a model."""

    COPY = "ema teacher swa average averaged shadow target momentum old frozen ref reference"
    """A copy of a model that no gradient ever reaches."""

    OPTIMIZER = "optim optimizer optimiser opt"
    """An optimizer."""

    SCALER = "scaler"
    """What scales the loss of mixed precision."""

    SCHEDULER = "lr learning_rate sched scheduler warmup warm_up"
    """Sets the learning rate, or is one."""

    LOSS = "loss"
    """A loss, or what computes one."""

    CRITERION = "criterion cri crit loss_fn loss_func loss_function"
    """What computes a loss."""

    METRIC = "metric meter acc bleu evaluator top1 top5 topk lpips perceptual"
    """Says how good a model is, or collects what does."""

    RECORD = "log history record meter stat statistic summary"
    """Collects numbers for a report."""

    LOADER = "loader dl prefetcher batches"
    """Yields batches."""

    DATASET = "dataset data_set subset ds"
    """Holds samples."""

    BATCH = "batch minibatch"
    """Several samples together."""

    DATA = "data set iter iterator queue samples images"
    """Whatever a loop over data goes through."""

    PREPROCESSING = (
        "tokenizer processor preprocess postprocess preprocessor postprocessor retriever"
        " feature_extractor to_pil_image"
    )
    """Turns text, pictures or sound into numbers, or back."""

    TRANSFORM = "transform aug* normaliz* pool* act activation softmax sigmoid"
    """Computes something of a tensor, without parameters."""

    DEVICE = "device dev gpu cuda local_rank device_id gpu_id"
    """A device."""

    ACCELERATOR = "cuda gpu"
    """A device beside the host's."""

    HOST = "host"
    """The memory of the host."""

    OPTIONS = "opt arg cfg config conf hparam hps flag option setting"
    """What the user of a program has chosen."""

    ENVIRONMENT = "env venv"
    """A simulation in which an agent acts."""

    WORLD = "gym environment simulator sim game world"
    """Also a simulation, under names that other things have as well."""

    ACTION = "action act"
    """What an agent does in an environment."""

    TRAINER = "trainer agent runner engine learner"
    """An object that trains models."""

    CONTEXT = (
        "state context ctx solver session strategy plugin callback hook handler wrapper manager system"
        " experiment task self cls algo algorithm obj"
    )
    """An object that may hold anything, the model and its optimizer included."""

    FILE = "writer builder file h5 hdf hdf5 zarr lmdb txn"
    """An open file."""

    FACTOR = "weight lambda alpha beta gamma coef coeff coefficient lam"
    """A number that a term of a loss is multiplied with."""

    RATIO = "scale factor ratio inv inverse num"
    """A number that something is multiplied with or divided by."""

    # --- numbers

    ITERATION = "it iter itr iteration step tick update"
    """Counts the rounds of a loop, or is one."""

    COUNT = "count counter cnt"
    """Counts something."""

    SIZE = "shape size dim ndim width height channel head hw h w c len length d_model"
    """How large something is."""

    LENGTH = "len length"
    """How many elements something has."""

    EPOCH = "epoch ep"
    """A pass over a data set."""

    RUN = "fold seed run trial round experiment repeat"
    """A training among several."""

    ACCUMULATION = "accum* micro* grad_acc gradacc"
    """Gradients of several batches are summed before a step."""

    BEST = "best lowest highest"
    """The best so far of something."""

    EXTREME = "min max"
    """The smallest or the largest of something."""

    CLOCK = "now time toc tic"
    """A moment."""

    # --- the machinery

    DISTRIBUTED = (
        "dist ddp rank world distributed slurm horovod hvd deepspeed fsdp parallel multi launch nproc master"
        " main_process num_process process_id process_index process_group shard replica partition"
    )
    """Several processes work together, each on its share."""

    EXCHANGE = (
        "all_reduce_mean all_reduce_sum all_reduce_avg all_reduce_average all_reduce_scalar all_reduce_dict"
        " all_reduce_tensor all_reduce_loss all_reduce_metric all_reduce_value all_reduce_item reduce_tensor"
        " reduce_value reduce_dict reduce_loss_dict reduce_scalar_tensor dist_reduce dist_all_reduce"
        " distributed_mean distributed_concat distributed_avg distributed_average across_rank across_process"
        " across_gpu across_device across_data_parallel"
    )
    """Works something out of what all processes have."""

    BUCKETING = (
        "bucket* balanc* group_by_length grouped_by length_grouped length_group length_based length_sampler"
        " length_sort by_length of_length same_length similar_length by_len same_len similar_len max_tokens"
        " tokens_per dynamic_batch packed packing aspect_ratio_group grouped_batch"
    )
    """Makes batches of items of like length, or of the same number of tokens."""

    ADAPTATION = "lora peft adapter galore freeze linear_probe linear_probing requires_grad"
    """Trains a small part of a model only."""

    TRANSFORMER = (
        "transformer attention gpt llama bert roberta t5 bart lm llm language_model unet diffusion dit vit"
        " swin decoder_layer encoder_layer"
    )
    """A transformer, a language model or a model of diffusion: a network with many parameters."""

    SHARDING = "shard split partition replica worker"
    """Decides which part of the data, or of a model, a process has."""

    ORDERING = "shuffle skip keep filter draw rng"
    """Decides which samples come, and in which order."""

    FETCHING = "fetch get next open query receive read reader stream iter batches"
    """Gets something from elsewhere."""

    PRECISION = "amp autocast half fp16 bf16 fp8 float16 bfloat16 mixed_precision"
    """Computes in fewer bits."""

    MEMORY = "memory mem vram oom offload gc garbage"
    """The memory of a device, and how to spare it."""

    SPARING = (
        "offload off_load low_mem low_memory low_vram low_ram save_mem save_memory save_vram saving_memory"
        " cpu_checkpoint store_on_cpu store_in_cpu store_to_cpu keep_on_cpu keep_in_cpu move_to_cpu"
        " accumulate_on_cpu accumulate_in_cpu"
    )
    """Saves memory of the device by using that of the host."""

    CACHE = "cache empty clean"
    """Keeps what was computed or given back, or throws it away."""

    CHECKPOINT = "checkpoint ckpt pretrained"
    """The stored state of a training."""

    INFERENCE = "infer inference extract_features extract_embeddings"
    """Also uses a trained model; what finds out shapes and types is called so, too."""

    DECODING = "decode"
    """Turns what a model works with into a result; may be a part of a forward pass."""

    PENALTY = "penalty"
    """A term of a loss that keeps a model in check."""

    SCORE = "accuracy perplexity"
    """How good a model is."""

    LOSS_TERM = (
        "g d rec recon kl kld ce bce mse l1 l2 gan adv cls reg box obj mask seg aux real fake gen disc"
        " mel percep vgg tv style content contrast ctc att nll kd"
    )
    """Which of the terms of a loss: ``loss_ce``."""

    STOPPING = "stop stopping stopper early convergence termination split selection acceptance"
    """Says when to stop, or where to split."""

    FUNCTION = "fn func function loop"
    """A function."""

    VERB = (
        "get set add register convert wrap freeze unfreeze compile copy clone run has is use check"
        " score apply calc calculate compute do enable ignore include no reduce return skip should"
        " track want with"
    )
    """What follows is what something is done to, or what is asked for: ``use_aux_loss``."""

    COMPUTING = "compute calc calculate measure check"
    """Works a number out."""

    AUXILIARY = "is do in run mode only"
    """Stands beside the verb in the name of a flag: ``is_training``, ``eval_mode``."""

    TYPE = "type dtype schema"
    """What kind of thing something is."""

    NOISE = "noise"
    """Random numbers."""

    INDEX = "i j k t n ni idx index"
    """Says which element of a series."""

    INDICES = "indices inds index idx ids"
    """Whole numbers that say which elements of a tensor."""

    EPISODE = "episode"
    """A run of an agent through an environment."""

    GUIDANCE = "guide guided guidance force interpret interpretation inversion invert gradient style_transfer"
    """Also differentiates with respect to the input, under names that other things have."""

    NO_GRADIENT = "no_grad eval_mode evaluating disable_grad grad_enabled"
    """Switches autograd off."""

    NETWORK = "backbone discriminator unet vae"
    """A model by its kind; may be a part of another."""

    MAGNITUDE = "size"
    """How large something is, in one number."""

    TRACING = "onnx_trace is_tracing is_scripting is_exporting in_onnx_export get_tracing_state"
    """Asks whether a model is being exported."""

    OCCASION = (
        "should time_to is_log is_print is_plot is_save is_eval is_last is_first is_final is_best at_log"
        " at_print at_plot at_save at_eval at_last at_first at_final do_log do_print do_plot do_vis log_now"
        " this_step this_iter this_batch log_step last_step last_iter last_batch first_step first_iter"
        " first_batch final_step final_batch improved early_stop diverged has_nan has_inf is_nan is_inf"
        " found_nan found_inf"
    )
    """Asks whether something is due that happens now and then."""

    PLACE_IN_PIPELINE = (
        "first_rank last_rank first_pp_rank last_pp_rank first_stage last_stage first_layer last_layer"
    )
    """Is one of the processes, or one of the layers, that a batch goes through."""

    NEIGHBOUR = "last prev previous next"
    """Comes before or behind something."""

    PARAMETER = "p param parm para parameter weight bias tensor"
    """A parameter of a model."""

    PARAMETERS = "params parameters state_dict sd"
    """The parameters of a model, all of them."""

    GRADIENT = "grad gradient"
    """A gradient."""

    TRANSLATION = "translate translation caption summarize"
    """Makes one text of another."""

    CPU = "cpu"
    """The processor of the host, or its memory."""

    ANOMALY = "nan inf anomaly"
    """A number that is none."""

    CLIPPING = "clip clamp norm"
    """Limits numbers, or measures how large they are together."""

    DECAY = "decay momentum beta"
    """Makes something smaller with time."""

    WATCHING = "watch timer"
    """Looks on while something else works."""

    LANGUAGE_MODEL = "lm llm gpt t5 bart decoder"
    """A model that writes text."""

    ONCE = "once"
    """Runs once."""

    WARMUP = "warm warming warm_up"
    """Runs before what counts."""

    PURE = (
        "isinstance repr str id type getattr hasattr list tuple dict zip enumerate map filter sum min"
        " max any all range reversed sorted cache"
    )
    """Only looks at what it is given, or arranges it."""

    SEARCH = "search find probe"
    """Tries until something fits."""

    SYNCHRONIZATION = "hard sync synchronize"
    """Makes two things the same."""

    SWITCHING = "mode toggle switch unfreeze set on hook callback"
    """May change how a model works: ``on_epoch_end``, ``set_mode``."""

    FINAL = "last final"
    """Comes at the end."""

    NUMBER = "num n"
    """Says how many there are: ``num_layers``."""

    CARRIED = (
        "hidden recurren* repackag* lstm gru rnn memory mem carry stateful bptt init_state reset_state"
        " spike membrane buffer"
    )
    """Is kept by a model from one forward pass to the next."""

    RANDOMNESS = "rand* normal noise sample"
    """Draws random numbers."""

    ALGORITHM = (
        "adam* adan adagrad adafactor lamb lars lion madgrad muon novograd nadam ranger rmsprop rms_prop"
        " sgd shampoo sophia"
    )
    """A method of optimization, after which an optimizer is called."""

    FLOAT16 = "half fp16 float16"
    """Computes in float16."""

    BFLOAT16 = "bf16 bfloat16"
    """Computes in bfloat16."""

    TENSOR_FLOAT = "tf32 float32_matmul_precision fp32_precision"
    """Says whether products of float32 are computed in TF32."""

    REDUCED_PRECISION = (
        "amp autocast fp16 bf16 fp8 float16 bfloat16 int8 opt_level loss_scale loss_scaler loss_scaling"
        " native_scaler qat qconfig qlora lora_config load_in prepare_qat fake_quant grad_scaler"
        " mixed_precision half_precision torch_dtype weight_dtype compute_dtype param_dtype model_dtype"
    )
    """Chooses the precision of a training: ``use_amp``, ``torch_dtype``."""

    RETRIEVAL_METRIC = "recall average_precision precision_score precision_at"
    """A metric beside which ``precision`` is one as well."""

    SECOND_DERIVATIVE = (
        "grad_penalty gradient_penalty r1_reg r1_gamma r1_lambda r1_weight gp_reg gp_gamma gp_lambda"
        " gp_weight hessian jacobian unrolled"
    )
    """Differentiates what was differentiated."""

    SPARSE_GRAPH = "adj adjacency edge_index node_feat node_feature"
    """The nodes and edges that a network for graphs works on."""
    STARTUP = (
        "compile compiling compiled compilation warm warming warmup warm_up load loading loader loaded init"
        " initialize initialise initialized initialization build building built startup start_up setup set_up"
        " trace tracing traced export exporting exported first cold"
    )
    """Is done once, before what counts."""

    LAUNCH = "launch launching overhead dispatch dispatching enqueue async without no_sync"
    """Hands work over to something else, and does not wait for it."""

    DETECTION = "detect detection detector sam rcnn fasterrcnn maskrcnn keypointrcnn retinanet yolo yolov"
    """Finds things in pictures."""

    GENERATING = "generate generator generation generative"
    """Makes sequences or pictures, step by step."""

    PIPELINE = "pipe pipeline"
    """Several models and what comes between them."""

    DIFFUSION = (
        "unet transformer vae controlnet prior decoder movq vqvae vqgan text_encoder image_encoder"
        " vision_encoder audio_encoder adapter denoiser vocoder projection_model language_model"
    )
    """A model that a pipeline of diffusion has as a part."""

    NOISE_LEVEL = "sigma sigmas alpha alphas beta betas lambda"
    """How much noise is in a sample."""

    CONVERSION = "merge unmerge fuse unfuse load unload save export convert quantize dequantize requantize"
    """Changes or stores a model, once."""

    DETERMINISM = "determin* nondetermin* reproduc*"
    """Makes a program compute the same each time, whatever that costs."""

    DOUBLE = "double float64 fp64 f64 precision dtype"
    """Says with how many digits something is computed."""

    SENDING = "to_device to_cuda to_gpu try_cuda maybe_cuda"
    """Moves something to a device."""

    HARDWARE = "cuda gpu device accelerator"
    """What a program runs on."""

    EMPTYING = "empty_cache empty_cuda_cache empty_gpu_cache empty_device_cache empty_memory_cache"
    """Gives the memory back that an allocator keeps."""

    LOGGER = "logger writer stdout stderr"
    """Is told how a program goes."""

    NORMALIZATION = "norm bn"
    """Normalises what a layer makes, or is a layer that does."""

    LAYER = (
        "layer block conv convolution linear attention encoder decoder net head lstm gru embedding mlp norm"
        " cell module branch stage ffn network model unit"
    )
    """A layer of a model, or a part of several."""

    VOCABULARY = (
        "vocab vocabulary num_token num_word n_token n_word lm_head word_emb word_embedding token_emb"
        " token_embedding tok_emb tok_embedding embed_token wte"
    )
    """The words that a model knows, or what it looks them up in."""

    PADDED_VOCABULARY = "padded_vocab pad_vocab vocab_size_padded make_vocab_size_divisible"
    """A vocabulary that is larger than it has to be, for the sake of speed."""

    PRETRAINED = "pretrained glove word2vec fasttext word_vector"
    """Weights that somebody else has trained, or what is made with them."""

    WRAPPER = "wrap wrapper wrapped proxy export exporter exported"
    """Stands around a model."""

    STAND_IN = (
        "hook patch patched monkeypatch wrap wrapper wrapped new_forward old_forward orig_forward"
        " original_forward forward_new forward_old forward_orig forward_original"
    )
    """Takes the place of another function, and calls it."""

    COMPILATION = "dynamo torchdynamo compile compiled compiler compiling compilable compilation"
    """Makes fast code of a function, or keeps away from that."""

    LENGTH_GROUPING = (
        "bucket* group_by_length max_tokens largest_batch length_grouped by_length of_length length_sampler"
        " length_based dynamic_batch"
    )
    """Makes batches of items of like length, or tries the largest batch first."""

    PER_PARAMETER = "param parameter grad gradient state_dict"
    """Has as many parts as a model has parameters."""

    ATTENTION = "attention attn transformer patch"
    """Looks at all parts of a sequence, or of a picture in patches."""

    FULLY_CONVOLUTIONAL = (
        "res_net resnet* res_next resnext* resnest* wide_resnet wideresnet* preact_resnet preactresnet*"
        " dense_net densenet* squeeze_net squeezenet* google_net googlenet* inception inceptionv"
        " shuffle_net shufflenet* mobile_net mobilenet* mnas_net mnasnet* efficient_net efficientnet*"
        " reg_net regnet* fcn deeplab deeplabv u_net dla dpn xception seg_net segnet*"
    )
    """A network that convolves all the way to one last layer."""

    CONVOLUTIONAL = (
        "vgg conv_net conv_next convnext* dcgan dark_net darknet* le_net se_net senet* hr_net hrnet* cnn"
        " pyramid_net alex_net pix2pix cycle_gan srcnn edsr vdsr rdn rcan stylegan"
    )
    """Another network that mostly convolves."""

    NOT_CONVOLUTIONAL = (
        "vi_t swin transformer mixer bert gpt text 1d audio wav speech rnn lstm fasterrcnn faster_rcnn"
        " mask_rcnn retina retina_net ssd ssdlite gcn graph"
    )
    """A network of another kind, or over other things than images of one size."""

    MULTIPLYING = (
        "transformer attention attn bert roberta albert distilbert gpt vi_t swin mixer clip_model clip_vi_t"
        " clip_text open_clip mlp lstm gru token tokenizer embed embedding embedder text vocab vocabulary llm"
        " caption latent"
    )
    """Is about networks, or their inputs, whose work is products of matrices."""

    PICTURE = "torchvision image img cifar imagenet image_net imagefolder image_folder"
    """Pictures, or where they come from."""

    PICTURE_SIZE = (
        "image_size image_res image_resolution image_dim image_h image_w image_height image_width image_rows"
        " image_cols img_size img_res img_resolution img_dim img_h img_w img_height img_width img_rows"
        " img_cols img_shape input_size input_res input_resolution input_dim input_h input_w input_height"
        " input_width im_size crop_size train_crop_size patch_size load_size fine_size frame_size tile_size"
        " train_size resolution"
    )
    """How large the pictures of a program are, all of them."""

    STYLE_TRANSFER = "style_image style_weight style_size style_loss"
    """Gives one picture the style of another; the network for that is called a transformer."""

    ENGINE_STEP = (
        "forward_batch schedule_batch worker_batch decode_batch prefill_batch running_batch sampling_batch"
        " forward_batch_info schedule_batch_info worker_batch_info decode_batch_info prefill_batch_info"
        " running_batch_info sampling_batch_info verify_input draft_input attn_metadata attention_metadata"
        " forward_metadata sampling_metadata spec_decode_metadata scheduler_output step_context"
        " forward_context pooling_metadata pooling_cursor sampler_output sampling_input model_runner_output"
        " spec_metadata spec_info lora_mapping lo_ra_mapping lora_batch_info expert_token_metadata"
        " expert_tokens_metadata connector_metadata"
    )
    """What one step of an inference engine works on: an engine makes one for each, and hands it on."""

    ATTENTION_BACKEND = "attn_backend attention_backend attn_impl attention_impl"
    """The part of an inference engine that computes attention at each step."""

    PASS_INPUT = "hidden_states input_embeds inputs_embeds multimodal logits positions query"
    """What each pass of a model through its layers is given, or makes, in an inference engine."""

    NOISE_PREDICTION = "model_output noise_pred"
    """What a model predicts for a scheduler of noise levels."""

    MEDIA_ENCODING = (
        "get_image_feature get_video_feature get_audio_feature get_multimodal_feature"
        " get_multimodal_embedding embed_multimodal"
    )
    """Has a model encode the pictures and sounds of a batch, ahead of its forward pass."""

    ENGINE_START = "compile_or_warm_up_model init_device load_model load_weights profile_run warm_up"
    """Is done once, before an inference engine serves."""

    INITIALIZATION = "init initialise initialize"
    """Gives what a run goes on with its first value."""

    REHEARSAL = "capture dummy warmup"
    """Runs before what counts, with made-up inputs, or to record what is run later."""

    CALIBRATION = "calib calibrate calibrating calibration"
    """Measures the values of a model once, to choose scales for them."""

    VARIABLE_SHAPE = (
        "vocab vocabulary token tokenizer tokenize sentence utterance spectrogram mel waveform wav wave"
        " pad_sequence bucket* multi_scale bounding bbox boxes anchors coco detection point_cloud"
    )
    """Texts, sounds and point clouds are as long as they are; detectors get pictures as large as they are."""


_MOST_REMEMBERED: Final = 1 << 16
"""So many identifiers are remembered in a process."""

_PART: Final = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|\d+")
_AUXILIARIES: Final = frozenset({"do", "maybe", "run"})
"""What stands in front of the verb of a function: ``run_eval``."""

_SHORTEST_SINGULAR: Final = 3
_SHORTEST_RUN_TOGETHER: Final = 3
_NO_PLURALS: Final = ("ss", "us", "is", "as", "os")
"""How words end that are no plurals, unless the lexicon has what is before the s: ``gpus``, ``betas``."""

_QUALIFIERS: Final = frozenset({"seq", "num"})
"""Words that suggest nothing and are run together with those of the lexicon: ``seqlen``."""

_WHOLE: Final = frozenset({"argmax", "argmin", "parametric", "unittest"})
"""Words that look as if two were run together."""
_IRREGULAR: Final = {
    "ids": "id",
    "dls": "dl",
    "criteria": "criterion",
    "indices": "index",
}


class _Found(NamedTuple):
    """A role of some of the words of an identifier; ``exact`` if they stand as the lexicon has them."""

    role: Role
    start: int
    end: int
    exact: bool


class _Reading(NamedTuple):
    """What an identifier suggests."""

    roles: frozenset[Role]
    first: frozenset[Role]
    last: frozenset[Role]
    one: frozenset[Role]
    """The roles of the last word, unless it is a plural."""


def roles(name: str | None) -> frozenset[Role]:
    """Return what an identifier suggests; nothing for no identifier."""
    return _read(name).roles if name else frozenset()


def has(name: str | None, *wanted: Role) -> bool:
    """Return whether a word anywhere in an identifier has one of these roles: ``best_val_loss``."""
    return name is not None and not _read(name).roles.isdisjoint(wanted)


def begins(name: str | None, *wanted: Role) -> bool:
    """Return whether an identifier begins with a word of one of these roles, as functions do: ``run_eval``.

    A plural is none: ``samples_needed`` samples nothing.
    """
    return name is not None and not _read(name).first.isdisjoint(wanted)


def ends(name: str | None, *wanted: Role) -> bool:
    """Return whether an identifier ends with a word of one of these roles, as the names of things do.

    Numbers and single letters behind it tell several of them apart: ``optimizer_g``, ``loss1``, ``Conv2d``.
    """
    return name is not None and not _read(name).last.isdisjoint(wanted)


def denotes(name: str | None, *wanted: Role) -> bool:
    """Return whether a variable of this name is one thing of these roles: neither several nor a function."""
    if name is None:
        return False
    reading = _read(name)
    return not reading.one.isdisjoint(wanted) and Role.VERB not in reading.first


def asks(name: str | None, *wanted: Role) -> bool:
    """Return whether a flag of this name asks for one of these roles and nothing else: ``is_training``."""
    if not has(name, *wanted):
        return False
    spelt = _spelt(name or "")
    said = [each for each in _found(spelt) if each.exact and each.role in {*wanted, Role.AUXILIARY}]
    return all(any(each.start <= at <= each.end for each in said) for at in range(len(spelt)))


def names_device(name: str | None) -> bool:
    """Return whether a variable of this name is a device."""
    return denotes(name, Role.DEVICE)


def names_loader(name: str | None) -> bool:
    """Return whether a variable of this name is a data loader: one for data, or simply called ``loader``."""
    if not denotes(name, Role.LOADER):
        return False
    said = (Role.DATA, Role.TRAINING, Role.EVALUATION, Role.TEST, Role.HELD_OUT)
    return words(name or "") == ("loader",) or has(name, *said)


def names_loaders(name: str | None) -> bool:
    """Return whether a variable of this name holds several data loaders: ``val_loaders``, ``loader_dict``."""
    said = [word for word in words(name or "") if word not in ("dict", "dic")]
    return names_loader("_".join(said))


def names_model(name: str | None) -> bool:
    """Return whether a variable of this name is a model; ``build_model`` is a function."""
    if name is None or name[:1].isupper() or begins(name, *_DOINGS) or has(name, Role.SIZE):
        return False
    return name == "module" or denotes(name, Role.MODEL, Role.POLICY, Role.NETWORK)


def names_test_case(name: str | None) -> bool:
    """Return whether a name is that of a class of unit tests, as ``ModelTestCase`` is."""
    return name is not None and words(name)[-2:] == ("test", "case")


def names_tokenizer(name: str | None) -> bool:
    """Return whether a variable of this name makes tokens of texts."""
    return name is not None and name.lower().endswith("tokenizer")


_TOKENS = frozenset(
    {"input_ids", "attention_mask", "token_type_ids", "decoder_input_ids", "decoder_attention_mask"}
)
_BESIDE_TOKENS = frozenset({"encodings", "id", "ids", "idx", "label", "labels"})


def name_tokens(keys: frozenset[str]) -> bool:
    """Return whether the items of a batch that has these keys are tokens of texts, with masks and labels."""
    return not keys.isdisjoint(_TOKENS) and keys <= _TOKENS | _BESIDE_TOKENS


def names_criterion(name: str | None) -> bool:
    """Return whether a variable of this name computes a loss."""
    if has(name, Role.STOPPING) or begins(name, Role.VERB):
        return False
    return denotes(name, Role.CRITERION) or (begins(name, Role.CRITERION) and not ends(name, Role.FUNCTION))


@lru_cache(_MOST_REMEMBERED)
def names_loss(name: str | None) -> bool:
    """Return whether a variable of this name is a loss; ``use_aux_loss`` and ``compute_loss`` are not."""
    if begins(name, Role.LOGGING):
        return False
    return denotes(name, Role.LOSS) or (begins(name, Role.LOSS) and denotes(name, Role.LOSS_TERM))


def names_optimizer(name: str | None) -> bool:
    """Return whether a variable of this name is an optimizer, also one of several: ``optimizer_encoder``."""
    if has(name, Role.SCHEDULER):
        return False
    if denotes(name, Role.OPTIMIZER):
        return True
    return begins(name, Role.OPTIMIZER) and denotes(name, Role.MODEL, Role.MODEL_PART, Role.POLICY)


def asks_for_accelerator(name: str | None) -> bool | None:
    """Return whether a flag of this name asks for an accelerator, or (False) for none; None for neither."""
    said = words(name or "")
    if said == ("cpu", "only") or (len(said) == 2 and said[1] == "cpu" and said[0] in ("use", "on", "is")):
        return False
    if len(said) < 2:
        return True if said == ("cuda",) else None
    if said[-1] == "available" and has(said[0], Role.ACCELERATOR):
        return True
    if not has(said[-1], Role.ACCELERATOR) or len(said) > 2 + ("the" in said):
        return None
    if said[0] in ("no", "disable", "without"):
        return False
    return True if said[0] in ("use", "using", "on", "is", "has", "have", "with", "want", "enable") else None


_DOINGS: Final = (
    *(Role.MAKING, Role.LOADING, Role.SAVING, Role.EXPORT, Role.LOGGING, Role.STEP, Role.TRAINING),
    *(
        Role.CLEARING,
        Role.LEARNING,
        Role.EVALUATION,
        Role.TEST,
        Role.HELD_OUT,
        Role.PREDICTION,
        Role.INFERENCE,
    ),
)
"""What functions do with a model that they are called after."""


def words(name: str) -> tuple[str, ...]:
    """Split an identifier, or a dotted name, into its words, in lower case and in the singular."""
    return tuple(map(_singular, _spelt(name)))


def _spelt(name: str) -> list[str]:
    """Return the words of an identifier as they stand, in lower case."""
    return [part for word in _PART.findall(name) for part in _divided(word.lower())]


@lru_cache(_MOST_REMEMBERED)
def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= _SHORTEST_SINGULAR or not word.endswith("s"):
        return word
    if word.endswith(_NO_PLURALS):
        return word[:-1] if word[:-1] in _KNOWN else word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses")) else word[:-1]


def _phrases() -> tuple[dict[str, list[tuple[tuple[str, ...], Role]]], list[tuple[str, Role]]]:
    """Return the words and phrases of all roles by their first words, and the beginnings of words."""
    phrases: dict[str, list[tuple[tuple[str, ...], Role]]] = {}
    stems: list[tuple[str, Role]] = []
    for role in Role:
        for entry in role.value.split():
            if entry.endswith("*"):
                stems.append((entry[:-1], role))
                continue
            phrase = tuple(_PART.findall(entry))
            phrases.setdefault(phrase[0], []).append((phrase, role))
            if len(phrase) > 1:
                together = "".join(phrase)
                phrases.setdefault(together, []).append(((together,), role))
    return phrases, stems


_PHRASES, _STEMS = _phrases()
_KNOWN: Final = frozenset(
    phrase[0] for phrases in _PHRASES.values() for phrase, _ in phrases if len(phrase) == 1
)


@lru_cache(_MOST_REMEMBERED)
def _divided(word: str) -> tuple[str, ...]:
    """Return the two words that a word is run together of, or the word."""
    if (
        word in _WHOLE
        or word in _KNOWN
        or _singular(word) in _KNOWN
        or any(word.startswith(stem) for stem, _ in _STEMS)
    ):
        return (word,)
    for at in range(_SHORTEST_RUN_TOGETHER, len(word) - _SHORTEST_RUN_TOGETHER + 1):
        first, second = word[:at], word[at:]
        if first not in _KNOWN and first not in _QUALIFIERS:
            continue
        if second in _KNOWN or _singular(second) in _KNOWN:
            return (first, second)
    return (word,)


@lru_cache(_MOST_REMEMBERED)
def _beginning_with(word: str) -> tuple[tuple[tuple[str, ...], Role], ...]:
    """Return the phrases that a word can begin, in whatever number, with their roles."""
    found: list[tuple[tuple[str, ...], Role]] = [
        ((word,), role) for stem, role in _STEMS if word.startswith(stem)
    ]
    for spelling in {word, _singular(word)}:
        found += _PHRASES.get(spelling, ())
    return tuple(found)


def _found(spelt: list[str]) -> Iterator[_Found]:
    """Yield the roles of the words of an identifier."""
    for at, word in enumerate(spelt):
        for phrase, role in _beginning_with(word):
            if len(phrase) == 1:
                yield _Found(role, at, at, phrase[0] == word)
                continue
            stands = spelt[at : at + len(phrase)]
            if [_singular(part) for part in stands] == [_singular(part) for part in phrase]:
                yield _Found(role, at, at + len(phrase) - 1, tuple(stands) == phrase)


_NOTHING: Final = _Reading(frozenset(), frozenset(), frozenset(), frozenset())


@lru_cache(_MOST_REMEMBERED)
def _read(name: str) -> _Reading:
    spelt = _spelt(name)
    found = list(_found(spelt))
    if not found:
        return _NOTHING
    first = next((at for at, word in enumerate(spelt) if word not in _AUXILIARIES), 0)
    last = len(spelt) - 1
    noun = last
    while noun > 0 and (spelt[noun].isdigit() or len(spelt[noun]) == 1):
        noun -= 1
    closing = range(noun, last + 1)
    return _Reading(
        roles=frozenset([each.role for each in found]),
        first=frozenset([each.role for each in found if each.exact and each.start in (0, first)]),
        last=frozenset([each.role for each in found if each.end in closing]),
        one=frozenset([each.role for each in found if each.exact and each.end in closing]),
    )
