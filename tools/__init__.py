"""Development tools of the project. Not part of the package."""
