"""`device-tensor-in-dataset` (TL107): the rule, and what only it asks of the model."""
