"""A conversation in the terminal: what happens (`story`), how it is shown, what a person types, and how both meet."""
