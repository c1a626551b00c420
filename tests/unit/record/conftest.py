"""Both sets of inner loops, for every test of this folder; see `record_loops`."""

from record_loops import chosen_loops, codec_for

__all__ = ["chosen_loops", "codec_for"]
