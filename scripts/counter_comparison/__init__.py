"""The parts of scripts/counters-against-ncu."""
