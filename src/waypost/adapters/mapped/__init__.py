"""The mapped files that the processes of one machine share."""
