"""`waypost lab check`: puts any sender through the answers and accidents it will meet, and reports how it fared."""
