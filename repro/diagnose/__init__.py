"""What a log says: facts read from it (`read`), and the fault classes they fit (`match`)."""
