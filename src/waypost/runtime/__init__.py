"""How stages run: lifecycle, lease loops, tickers, group commit, drain."""
