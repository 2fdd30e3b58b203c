"""`cudnn-benchmark-off` (TL503): the rule, and what only it asks of the model."""
