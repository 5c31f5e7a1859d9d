"""The mesh: the envelope, the bus, the gate and the ledger that every agent stands on."""
