"""The parallel sizes of a layout, and what follows from them.

Names are Megatron's: TP, PP, VPP (virtual pipeline), CP, EP, ETP, DP, EDP (expert data parallel).

    DP  = GPUs / (TP * PP * CP)
    EDP = GPUs / (ETP * EP * PP)
    GPUs are a multiple of PP * lcm(TP * CP, ETP * EP)

Source: `initialize_model_parallel` in Megatron-Core's `parallel_state.py`, which builds the dense and
the expert process groups from these products.
"""

from __future__ import annotations

import dataclasses
import math

from openrecipes.errors import UsageError

_SIZES = ("tp", "pp", "vpp", "cp", "ep", "etp", "rows_per_microbatch")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """The resolved parallel sizes of one run: every key has a value."""

    tp: int = 1
    pp: int = 1
    vpp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    rows_per_microbatch: int = 1
    sp: bool = False

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Read a layout text such as `tp=2,pp=6,ep=8,etp=1`.

        A key left out takes the engine's default: 1 for a size, except that ETP is TP (Megatron's
        own default) and SP is on when TP > 1 (MoE layers refuse to train otherwise).

        Raises:
            UsageError: naming every key that is unknown, repeated or has a wrong value.
        """
        given: dict[str, int | bool] = {}
        wrong: list[str] = []
        for part in filter(None, (p.strip() for p in text.split(","))):
            key, _, value = (s.strip() for s in part.partition("="))
            if key in given:
                wrong.append(f"`{key}` is given twice")
            elif key in _SIZES and value.isascii() and value.isdigit() and 0 < int(value[:9]) == int(value):
                given[key] = int(value)
            elif key == "sp" and value in ("true", "false"):
                given[key] = value == "true"
            else:
                wrong.append(f"`{part}`")
        if wrong:
            raise UsageError(
                f"layout `{text}`: {', '.join(wrong)} not understood; expected a comma-separated list of "
                f"{', '.join(f'{key}=N' for key in _SIZES)} with N >= 1, and sp=true|false"
            )
        given.setdefault("etp", given.get("tp", 1))
        given.setdefault("sp", given.get("tp", 1) > 1)
        return cls(**given)  # type: ignore[arg-type]

    def __str__(self) -> str:
        """The layout text with every key, which `parse` reads back to an equal layout."""
        sizes = ",".join(f"{key}={getattr(self, key)}" for key in _SIZES)
        return f"{sizes},sp={'true' if self.sp else 'false'}"

    @property
    def smallest_world(self) -> int:
        """PP * lcm(TP * CP, ETP * EP): every legal GPU count is a multiple of it."""
        return self.pp * math.lcm(self.tp * self.cp, self.etp * self.ep)

    def dp(self, gpus: int) -> int:
        """Data-parallel size on `gpus`, which must be a multiple of `smallest_world`."""
        return gpus // (self.tp * self.pp * self.cp)

    def edp(self, gpus: int) -> int:
        """Expert data-parallel size on `gpus`, which must be a multiple of `smallest_world`."""
        return gpus // (self.etp * self.ep * self.pp)

    def microbatches(self, gpus: int, global_batch: int) -> int:
        """Micro-batches per data-parallel rank and step: global_batch / (DP * rows_per_microbatch)."""
        return global_batch // (self.dp(gpus) * self.rows_per_microbatch)

    def label(self, gpus: int) -> str:
        """Short text for tables, such as `TP2 PP6 EP8 DP4`: sizes above 1, and ETP where it is not TP."""
        shown = [
            f"{name.upper()}{getattr(self, name)}"
            for name in ("tp", "pp", "vpp", "cp", "ep")
            if getattr(self, name) > 1
        ]
        if self.etp != self.tp:
            shown.append(f"ETP{self.etp}")
        return " ".join([*shown, f"DP{self.dp(gpus)}"])
