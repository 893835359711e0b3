"""PostgreSQL as the engine of the SQL adapters; the one place that imports its client, psycopg."""
