"""`launch-blocking-left-on` (TL805): the rule, and what only it asks of the model."""
