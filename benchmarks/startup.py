"""CPU time of short commands, in fresh processes.

The best of several, which other work on the machine disturbs least.

python benchmarks/startup.py [--quick]
"""

import resource
import subprocess
import sys

COMMANDS = {  # and the most CPU time that each may take, in seconds
    "import reticent": (["-c", "import reticent"], 0.3),
    **{
        f"reticent {words}": (["-m", "reticent", *words.split()], 0.5)
        for words in ("--version", "--help", "fit --help", "ledger open --help")
    },
}


def cpu_seconds(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    if "--quick" in sys.argv:
        tries = 2
    else:
        tries = 7
    late = False
    for command, (arguments, limit) in COMMANDS.items():
        seconds = sorted(cpu_seconds(arguments) for _ in range(tries))
        print(
            f"{command:<32} best {seconds[0]:.3f} s   worst {seconds[-1]:.3f} s   (limit {limit} s)"
        )
        late |= seconds[0] > limit
    sys.exit(late)


if __name__ == "__main__":
    main()
