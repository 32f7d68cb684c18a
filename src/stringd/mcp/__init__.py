"""The daemon as an MCP server: one tool for every command, and the gate and the runs beside it."""
