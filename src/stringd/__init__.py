"""stringd: one local daemon through which agents read, act, ask and run."""

__version__ = "0.1.0"
