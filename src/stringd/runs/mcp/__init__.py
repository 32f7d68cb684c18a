"""MCP servers whose tools agents of a run can use."""
