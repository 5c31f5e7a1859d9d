"""Doubles of the world outside: they speak the real protocols, over sockets."""
