"""The one way out: HTTP requests that reach public addresses and listed peers, and nothing else of this network."""

from farhand.outbound.client import Answer, Outbound, Reach, Resolve

__all__ = ["Answer", "Outbound", "Reach", "Resolve"]
