"""The studio: the window a data custodian works in, in a browser on this machine, on top of the library."""
