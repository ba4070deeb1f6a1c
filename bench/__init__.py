"""Farhand beside its peers: one pass, one machine, ratios. Not part of the package, and not a test."""
