"""`data-sent-every-step` (TL213): the rule, and what only it asks of the model."""
