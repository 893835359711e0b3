"""``python -m waypost.bootstrap [CONFIG]``: how the supervisor starts a worker."""

import sys
from pathlib import Path

from waypost.bootstrap.worker import worker_main
from waypost.runtime.supervisor import inheritance

inherited = inheritance()
if inherited is None:
    sys.exit("this is how the supervisor starts a worker; use: waypost serve")
sys.exit(worker_main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, inherited))
