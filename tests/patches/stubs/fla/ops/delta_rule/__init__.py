from . import wy_fast

__all__ = ["wy_fast"]
