"""The parts of scripts/fit-spmm-plan."""
