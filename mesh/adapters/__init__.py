"""The world, one module each: what implements the protocols of `mesh.ports`."""
