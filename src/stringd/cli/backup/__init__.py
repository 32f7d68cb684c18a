"""Everything stringd keeps for its owner, in one file and back again."""
