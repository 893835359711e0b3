"""One stage a file: plain functions over domain and ports."""
