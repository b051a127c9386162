"""The former name of the base class of requests, for plug-ins that were written for version 0.3."""

from .requests import RunRequest as RunSpec
from .requests import option as option

__all__ = ["RunSpec", "option"]
