"""The prompt of `string <topic>`."""
