"""`torchvision-pretrained` (TL905): the rule, and what only it asks of the model."""
