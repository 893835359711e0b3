"""What Waypost costs on this machine, measured: CPU per operation, and ratios of what was taken in the same run.

``waypost bench`` runs these benches with the gateway and the load generator that are here; ``make bench`` of the source
tree runs the same with faster ones, and more.
"""
