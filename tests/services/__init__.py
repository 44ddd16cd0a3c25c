"""Real servers for tests: PostgreSQL, S3, and the programs Chromium and bubblewrap.

``python -m tests.services install`` brings what is missing. The fixtures in tests/conftest.py are
the way in; nothing here knows Proctor itself.
"""
