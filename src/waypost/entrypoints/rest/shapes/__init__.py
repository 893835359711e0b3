"""The API in the shapes of others: thin translations onto the same intake and reads; each can be switched off."""
