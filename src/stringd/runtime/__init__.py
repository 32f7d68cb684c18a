"""Users, topics, sessions and commands: what happens behind `/exec`. Knows no HTTP."""
