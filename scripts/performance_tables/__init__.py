"""The tables of docs/performance.md, a module for each family: what scripts/performance-tables writes."""
