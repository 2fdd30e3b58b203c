"""What torchaudio deprecated or removed: since 2.9 it no longer reads and writes files."""

from __future__ import annotations

from typing import Final

from torchlint.semantics.api.changes import Upgrade

_AUDIO = "https://github.com/pytorch/audio/issues/3902"
_CODEC = "use TorchCodec"
_SOX = "call sox directly, or use another library"
_BACKEND = "the backend can no longer be selected"
_KALDI = "use the package `kaldiio`"

# What went with 2.9, and what to do instead.
_NOTES = {
    "info": _CODEC,
    "AudioMetaData": _CODEC,
    "io.StreamReader": _CODEC,
    "io.StreamWriter": _CODEC,
    "io.AudioEffector": _CODEC,
    "functional.apply_codec": _CODEC,
    **{f"sox_effects.{name}": _SOX for name in ("apply_effects_tensor", "apply_effects_file")},
    **{f"sox_effects.{name}": _SOX for name in ("init_sox_effects", "shutdown_sox_effects", "effect_names")},
    **{
        f"utils.sox_utils.{name}": _SOX
        for name in [
            "set_seed",
            "set_verbosity",
            "set_buffer_size",
            "get_buffer_size",
            "set_use_threads",
            "list_effects",
            "list_read_formats",
            "list_write_formats",
        ]
    },
    **{
        f"kaldi_io.read_{name}": _KALDI
        for name in ["mat_scp", "mat_ark", "vec_flt_ark", "vec_flt_scp", "vec_int_ark"]
    },
    **{f"{name}_audio_backend": _BACKEND for name in ("get", "set")},
    "list_audio_backends": _BACKEND,
    "utils.download_asset": "use `torch.hub.download_url_to_file`",
}
_WARNED = {
    "sox_effects.init_sox_effects": "2.0",
    "sox_effects.shutdown_sox_effects": "2.0",
    "functional.apply_codec": "2.1",
    "get_audio_backend": "2.2",
    "set_audio_backend": "2.2",
}

ROWS: Final = (
    *(
        Upgrade(
            symbol=f"torchaudio.{name}",
            deprecated=_WARNED.get(name),
            removed="2.9",
            note=note,
            source=_AUDIO,
        )
        for name, note in _NOTES.items()
    ),
    Upgrade(symbol="torchaudio.io.play_audio", removed="2.9", note=_CODEC, source=_AUDIO),
    Upgrade(
        symbol="torchaudio.functional.compute_kaldi_pitch",
        removed="2.1",
        note="it has no replacement",
        source="https://github.com/pytorch/audio/releases/tag/v2.1.0",
    ),
    *(
        Upgrade(
            symbol=f"torchaudio.backend.{module}.{name}",
            removed="2.1",
            note=f"use `torchaudio.{name}`",
            source="https://github.com/pytorch/audio/releases/tag/v2.1.0",
        )
        for module in ("soundfile_backend", "sox_io_backend")
        for name in ("load", "save", "info")
    ),
)
