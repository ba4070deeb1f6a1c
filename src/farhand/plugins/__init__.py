"""Plugins: tools with the functions that run them, and hooks, in one value. A client uses them, and so may a server."""

from farhand.plugins.plugin import NotMine, Plugin
from farhand.plugins.plugin_set import PluginSet

__all__ = ["NotMine", "Plugin", "PluginSet"]
