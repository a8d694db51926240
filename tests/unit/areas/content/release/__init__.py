"""Tests of how a release of content is performed."""
