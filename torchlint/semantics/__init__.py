"""What PyTorch programs mean: the only place that understands them."""

import torchlint.nodes  # noqa: F401  (before anything imports LibCST, which is then twice as quick)
