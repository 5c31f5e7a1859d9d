"""What the mesh needs of the world, one protocol each. Adapters live in `mesh.adapters`; every store method takes a
`Grant` and scopes the query itself by it."""
