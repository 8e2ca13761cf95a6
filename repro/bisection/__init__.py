"""Which build brought a fault, or took it away: the search, its journal, and what it runs on."""
