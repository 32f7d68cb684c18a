"""What crosses `/ws`: clients' requests, the daemon's messages, the values they share."""

from stringd.wire.runs.codec import Refusal, decode_request, encode

__all__ = ["Refusal", "decode_request", "encode"]
