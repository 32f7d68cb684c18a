"""Installed apps, their sources and mounted MCP servers."""
