"""specrepro: bring a GPU fault of an LLM engine back, say what it is, write the report."""

__version__ = "0.1.0"
