"""The version, read by the build and printed in every statement."""

__version__ = "0.1.0"
