"""The kernel of one broker or embedded log: which plugins are loaded, and what they provide.

loaded    the plugins: found, judged and registered; which of them an object or a function is from
hooks     calls their hooks, by what each returns or raises
kinds     what may be asked for by name: its hook, its contract, its guard
kernel    the door: a typed method for each kind
"""

from logkernel.kernel.kernel import CODEC_NAMES, Kernel
from logkernel.kernel.loaded import GROUP

__all__ = ["CODEC_NAMES", "GROUP", "Kernel"]
