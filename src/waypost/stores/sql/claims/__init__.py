"""Work on PostgreSQL: any process leases anything, by a row for each part that it has."""
