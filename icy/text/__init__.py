"""Requests to language models, for every part of icy that asks them.

`icy.text.client` asks a server. It needs the extra `text` (httpx and tenacity); the other modules need no extra.
"""
