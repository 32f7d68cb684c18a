"""The `stringd` and `string` commands: argument parsing and printing, nothing else."""
