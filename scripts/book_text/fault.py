"""What is wrong with a chapter."""


class Fault(Exception):
    """Something that the author of a chapter must repair."""
