"""`pure-half-training` (TL510): the rule, and what only it asks of the model."""
