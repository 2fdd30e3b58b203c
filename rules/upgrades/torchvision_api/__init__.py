"""`torchvision-api` (TL906): the rule, and what only it asks of the model."""
