"""Does a build of an engine have a defect: its files, and what they do."""
