"""What other systems' callers find here: their streams and notes, in their own formats."""
