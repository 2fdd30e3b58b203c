"""`item-in-hot-loop` (TL202): the rule, and what only it asks of the model."""
