"""How far one record can move what is released."""
