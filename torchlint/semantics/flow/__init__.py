"""The flow of control: graphs of functions, dominators, and the questions that they answer."""
