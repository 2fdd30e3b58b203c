"""What runs inside a measuring process: standard library and torch only; started by ``processes``.

``launch`` is apart: it runs in a process that ``torchlint.verify.launch`` starts, and asks accelerate.
"""
