"""The mesh's own agents. They import `mesh` and never one another."""
