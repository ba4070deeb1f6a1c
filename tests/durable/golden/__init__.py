"""Stores of formats that were written once and have to be read for ever; `make` tells how the newest came to be."""
