"""`$VARIABLES` of sessions, users and apps."""
