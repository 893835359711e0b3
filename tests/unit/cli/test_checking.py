"""What check-config says of a configuration."""

from __future__ import annotations

from pathlib import Path

import yaml

from waypost.bootstrap.registry import load
from waypost.cli.checking import explained


def test_check_config_can_say_what_holds(tmp_path: Path) -> None:
    demo = {
        "fcm": {"service_account_file": "fcm.json"},
        "apns": {"key_file": "key.p8", "key_id": "ABCDE12345", "team_id": "FGHIJ67890", "topic": "com.example"},
        "rates": {"fcm": {"capacity": 100, "refill_per_s": 2.5, "ramp_s": 0, "per_device": "3/h"}},
        "limits": {"callers": {"shop": "5/min"}},
    }
    path = tmp_path / "waypost.yaml"
    limits = {"counted_in": "file", "user": "unlimited"}
    path.write_text(yaml.safe_dump({"store": f"sqlite:///{tmp_path}/w.db", "apps": {"demo": demo}, "limits": limits}))
    assert explained(load(path, {})) == {
        "counted in": "file",
        "caller": "50000/s",
        "user": "unlimited",
        "address": "1000/h",
        "failures": "100/15min",
        "demo/shop": "5/min",
        "demo/fcm": "99 at once, 2.5 a second, to one device 3 in 3600 s",
        "demo/apns": "unlimited",
    }
