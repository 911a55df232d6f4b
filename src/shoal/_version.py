"""The version, read by the build and by every statement."""

__version__ = "0.1.0"
