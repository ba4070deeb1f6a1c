"""Who answers: the contract of a model, and the models that need no network. Providers are adapters beside these."""

from farhand.models.base import Model, Request, resolve
from farhand.models.manual import Manual, manual
from farhand.models.scripted import Recorder, Scripted, Turn, Use, record, scripted

__all__ = [
    "Manual",
    "Model",
    "Recorder",
    "Request",
    "Scripted",
    "Turn",
    "Use",
    "manual",
    "record",
    "resolve",
    "scripted",
]
