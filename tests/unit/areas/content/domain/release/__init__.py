"""Tests of the release of a content, as the document has it."""
