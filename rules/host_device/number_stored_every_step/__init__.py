"""`number-stored-every-step` (TL215): the rule, and what only it asks of the model."""
