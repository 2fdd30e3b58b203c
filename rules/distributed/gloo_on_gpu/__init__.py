"""`gloo-on-gpu` (TL710): the rule, and what only it asks of the model."""
