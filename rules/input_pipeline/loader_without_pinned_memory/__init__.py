"""`loader-without-pinned-memory` (TL102): the rule, and what only it asks of the model."""
