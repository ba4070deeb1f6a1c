"""The shop's tools: what they are, what the server does for them, what the client does."""
