"""What the mesh is doing, on one page. It only reads."""
