"""The intake of streams: what other programs write into Redis or Kafka becomes notifications."""
