from . import common, delta_rule, gated_delta_rule

__all__ = ["common", "delta_rule", "gated_delta_rule"]
