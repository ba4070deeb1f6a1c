"""How many tokens the definitions cost that are sent to the model with every turn."""
