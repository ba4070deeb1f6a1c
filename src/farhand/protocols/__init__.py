"""Wire formats: bytes to values and values to bytes. They translate and decide nothing; `asgi` and `client` carry."""
