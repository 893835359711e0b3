"""The composition root: the only package that names adapters. Each part is imported by itself: few need all of it."""
