from .runtime.autotuner import Config, autotune, heuristics, jit

__version__ = "3.6.0"
__all__ = ["Config", "autotune", "heuristics", "jit"]
