"""Webhooks in. It imports no store library and no agent, and starts in under a second."""
