"""The program that runs a command behind Landlock and seccomp.

Started as its own package by a bare interpreter, once for every command: nothing here imports the
rest of stringd, or anything of the standard library that takes long to load.
"""
