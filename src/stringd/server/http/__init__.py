"""HTTP/1.1: connections, requests and replies."""
