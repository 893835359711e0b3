"""What ``waypost doctor`` looks at, one file for each kind of trouble."""
