"""`unsharded-optimizer-state` (TL709): the rule, and what only it asks of the model."""
