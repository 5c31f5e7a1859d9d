"""Servers and models as child processes, for a machine that has nothing but the package index."""
