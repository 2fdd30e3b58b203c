"""`accumulation-unscaled` (TL306): the rule, and what only it asks of the model."""
