"""One file a scenario: the small program of a case, written against the ops."""
