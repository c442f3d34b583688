"""The bandit service under load, killed in the middle.

What was promised holds, and how many rounds a second it takes.

64 clients, 10,000 tells, three SIGKILLs. --quick: 8 clients, 100 tells, one.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.serving import kill_in_the_middle

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--quick", action="store_true")
if parser.parse_args().quick:
    tells = 100
    clients = 8
    kills = 1
else:
    tells = 10_000
    clients = 64
    kills = 3

with tempfile.TemporaryDirectory() as folder:
    found, went = kill_in_the_middle(
        Path(folder) / "budget.db", tells=tells, clients=clients, kills=kills
    )
print(
    f"{clients} clients, {tells:,} tells, {kills} kills: {went['rounds']:,} rounds, "
    f"{went['releases']} releases"
)
print(f"{went['rounds'] / went['seconds']:.0f} rounds a second, restarts included")
for promise, held in found.items():
    print(f"  {promise}: {'yes' if held else 'NO'}")
sys.exit(not all(found.values()))
