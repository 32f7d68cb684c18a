"""Assembles the rooms below into one ASGI application and serves it on loopback."""
