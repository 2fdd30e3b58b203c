"""`profiler-left-on` (TL802): the rule, and what only it asks of the model."""
