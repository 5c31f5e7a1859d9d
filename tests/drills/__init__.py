"""Fault drills. `python -m tests.drills --help`."""

from tests.drills import crowds, models, provider, stores, storms, versions, workers
from tests.drills.drill import Drill

DRILLS: dict[str, Drill] = {
    drill.name: drill
    for module in (workers, versions, stores, models, provider, crowds, storms)
    for drill in module.DRILLS
}
