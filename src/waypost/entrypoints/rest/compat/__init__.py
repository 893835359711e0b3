"""APIs of other products, served as their callers know them: translations onto the same intake and reads."""
