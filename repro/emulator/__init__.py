"""PTX on numpy: knows PTX and arguments, no kernel and no case."""
