"""Models of what Farhand promises, and the programs that check them."""
