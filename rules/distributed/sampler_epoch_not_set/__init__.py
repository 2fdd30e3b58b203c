"""`sampler-epoch-not-set` (TL705): the rule, and what only it asks of the model."""
