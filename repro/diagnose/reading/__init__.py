"""Lines of logs to facts: one file a concept, put together by `repro/diagnose/read.py`."""
