"""Users, their topics and sessions: state, queue, store."""
