"""Write the files of deploy/prometheus and deploy/grafana: ``python -m scripts.observability``."""

from scripts.observability.files import files


def main() -> None:
    """Write each file anew."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
