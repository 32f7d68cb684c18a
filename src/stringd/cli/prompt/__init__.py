"""The prompt of `string <topic>` on a terminal. Only this room imports prompt_toolkit."""
