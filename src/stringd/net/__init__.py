"""The way to the network: one fetch, one classifier of addresses, one MCP client."""
