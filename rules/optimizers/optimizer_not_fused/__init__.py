"""`optimizer-not-fused` (TL506): the rule, and what only it asks of the model."""
