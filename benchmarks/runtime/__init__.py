"""What waits when real libraries run on a GPU, held against what torchlint says of their source.

    python -m benchmarks.runtime observe --json observed.json     (on a machine with a GPU)
    python -m benchmarks.runtime compare observed.json --packages FOLDER    (anywhere, the same releases)

``observe`` calls the public modules and functions of some libraries with small inputs, those that run on the
CPU first, with ``torch.cuda.set_sync_debug_mode("warn")`` and `sys.monitoring`: which lines of the library
made the host wait, and which ran. Each group of subjects runs in a process of its own, since one failed
assertion on the device spoils a process.

``compare`` lints the same releases and joins both, line by line: predicted and seen, seen only, and predicted
though the line ran and nothing waited.
"""
