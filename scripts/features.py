"""Print the table of docs/internals/features.md."""

from waypost.bootstrap.features import markdown

if __name__ == "__main__":
    print(markdown(), end="")
