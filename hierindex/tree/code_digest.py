"""Digests of users' functions, equal in every process while code and values are equal."""

import pickle
from functools import cached_property, partial
from types import CodeType, FunctionType, MethodType
from typing import Any
from uuid import uuid4

from hierindex.core.identity import digest


def code_digest(thing: Any, inside: tuple[Any, ...] = ()) -> str:
    """Return a digest of a function's name, code, defaults and closure, or of an object.

    A class has its methods and attributes. The code of functions that are called is left out. The
    digest of what cannot be pickled differs each time.

    >>> code_digest(lambda x: x + 1) == code_digest(lambda x: x + 2)
    False
    """
    parts: Any
    match thing:
        case set() | frozenset():  # whose order differs from process to process
            return digest(*sorted(code_digest(each, inside) for each in thing))
        case _ if any(each is thing for each in inside):  # it contains itself
            return "..."
        case tuple() | list():
            parts = thing
        case CodeType():
            parts = thing.co_code, thing.co_names, thing.co_consts
        case FunctionType(__code__=code, __defaults__=defaults, __kwdefaults__=named):
            values = [*(named or {}).items(), *(c.cell_contents for c in thing.__closure__ or ())]
            parts = thing.__module__, thing.__qualname__, code, defaults, values
        case MethodType(__func__=function, __self__=owner):
            parts = function, owner
        case partial(func=function, args=values, keywords=named):
            parts = function, values, [*named.items()]
        case property(fget=getter, fset=setter):
            parts = getter, setter
        case staticmethod(__func__=function) | classmethod(__func__=function):
            parts = (function,)
        case cached_property(func=function):
            parts = (function,)
        case type(__mro__=kinds):
            written = [each for kind in kinds for each in vars(kind).items() if _is_written(*each)]
            parts = str(thing), written
        case _:
            try:
                return digest(pickle.dumps(thing).hex())
            except (TypeError, AttributeError, RuntimeError, pickle.PicklingError):
                return uuid4().hex
    return digest(*(code_digest(part, (*inside, thing)) for part in parts))


def _is_written(name: str, value: Any) -> bool:
    """Return whether the body of a class has this attribute; Python adds others."""
    if name.startswith(("__", "_abc_")):
        return isinstance(value, FunctionType)
    return not hasattr(value, "__objclass__")
