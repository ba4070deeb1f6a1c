"""The HTTP face of a runner: what may be asked, by whom, and how streams leave."""

from farhand.asgi.app import App, create_app
from farhand.asgi.serve import serve

__all__ = ["App", "create_app", "serve"]
