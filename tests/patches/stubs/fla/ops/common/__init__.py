from . import chunk_delta_h, chunk_o

__all__ = ["chunk_delta_h", "chunk_o"]
