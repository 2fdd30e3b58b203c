"""`grad-zeroed-in-place` (TL302): the rule, and what only it asks of the model."""
