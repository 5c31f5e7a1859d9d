"""The skills of the mesh's own agents, and what they take and return. Agents meet here and never import one another."""
