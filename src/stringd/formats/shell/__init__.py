"""Shell command lines, read without running them: no files, no environment, no judgement."""
