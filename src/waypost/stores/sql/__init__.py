"""SQLite behind the Work, Devices, Views, Keys and Journal ports, over one database object."""
