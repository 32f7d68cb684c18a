"""The daemon as an MCP server."""
