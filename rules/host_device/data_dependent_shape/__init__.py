"""`branch-on-tensor` (TL205): the rule, and what only it asks of the model."""
