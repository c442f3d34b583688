"""CPU time of short commands, in fresh processes: the best of several, which other work on the machine disturbs least.

python benchmarks/startup.py [--quick]
"""

import resource
import subprocess
import sys

LIMIT = 0.5
COMMANDS = (["--version"], ["--help"], ["fit", "--help"], ["ledger", "open", "--help"])


def cpu_seconds(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "reticent", *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    tries = 2 if "--quick" in sys.argv else 7
    times = {" ".join(["reticent", *words]): sorted(cpu_seconds(words) for _ in range(tries)) for words in COMMANDS}
    for command, seconds in times.items():
        print(f"{command:<32} best {seconds[0]:.3f} s   worst {seconds[-1]:.3f} s   (limit {LIMIT} s)")
    sys.exit(max(seconds[0] for seconds in times.values()) > LIMIT)


if __name__ == "__main__":
    main()
