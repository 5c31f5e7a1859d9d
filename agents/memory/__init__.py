"""Long-term memory: what people told about themselves, kept by mem0 and judged here."""

from agents.memory.diary import agent as agent
