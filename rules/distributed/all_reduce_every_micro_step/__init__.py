"""`all-reduce-every-micro-step` (TL702): the rule, and what only it asks of the model."""
