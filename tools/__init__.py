"""Tools of the project itself: what compares two states of the code. Not part of the package."""
