"""compose.yaml and the image hold every service there is, and nothing whose version may change by itself."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]


def test_every_service_runs_in_compose():
    services = {path.parent.name for path in ROOT.glob("services/*/pyproject.toml")}
    commands = {tuple(container.get("command", ())) for container in COMPOSE.values()}
    assert {service for service in services if (f"snavio.{service}",) not in commands} == set()


@pytest.mark.parametrize("name", COMPOSE)
def test_every_image_is_pinned(name):
    image = COMPOSE[name]["image"]
    assert re.fullmatch(r"[a-z/-]+:(v?\d+\.\d+\.\d+|dev)", image), image


@pytest.mark.parametrize("name", COMPOSE)
def test_every_file_mounted_is_in_the_repository(name):
    mounts = [mount.split(":")[0] for mount in COMPOSE[name].get("volumes", ())]
    assert [mount for mount in mounts if mount.startswith("./") and not (ROOT / mount).exists()] == []


def test_ports_are_open_to_this_machine_only():
    ports = [port for container in COMPOSE.values() for port in container.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
