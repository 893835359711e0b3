"""What operators load into Prometheus and Grafana, written from the metrics that there are."""
