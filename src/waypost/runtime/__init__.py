"""How stages run: lease loops, tickers, workers and their supervisor."""
