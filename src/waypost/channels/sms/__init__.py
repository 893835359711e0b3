"""SMS through Twilio's Messages API."""
