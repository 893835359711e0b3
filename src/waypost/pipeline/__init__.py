"""The stages a notification goes through: plain functions over domain and ports, one file a stage."""
