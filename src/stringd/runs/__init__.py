"""Strategy files, flows, agents, timelines: what happens behind `/ws`. Knows no WebSocket."""
