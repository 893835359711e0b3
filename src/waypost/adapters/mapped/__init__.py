"""What the processes of one machine share in mapped files."""
