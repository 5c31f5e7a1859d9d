"""Benchmarks print a table and write JSON. They are not timed tests; the figures are in docs/benchmarks.md."""
