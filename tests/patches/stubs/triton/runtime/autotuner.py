"""The parts of Triton 3.6's autotuner that decide which configurations a kernel may run."""

import inspect


class JITFunction:
    def __init__(self, fn):
        self.fn = fn
        self.arg_names = list(inspect.signature(fn).parameters)


class Heuristics:
    def __init__(self, fn):
        self.fn = fn
        self.arg_names = fn.arg_names


class Config:
    def __init__(self, kwargs, num_warps=4, num_stages=3):
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages

    def __repr__(self):
        return f"{self.kwargs}, num_warps: {self.num_warps}, num_stages: {self.num_stages}"


class Autotuner:
    def __init__(self, fn, arg_names, configs, key, reset_to_zero, restore_value, **kwargs):
        self.fn = fn
        self.arg_names = arg_names
        self.configs = configs or [Config({}, num_warps=4, num_stages=3)]
        self.keys = key
        self.cache = {}


def autotune(configs, key):
    return lambda fn: Autotuner(fn, fn.arg_names, configs, key, None, None)


def heuristics(values):
    return Heuristics


def jit(fn):
    return JITFunction(fn)
