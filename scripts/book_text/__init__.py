"""What scripts/book does with the chapters' text."""
