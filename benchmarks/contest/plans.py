#!/usr/bin/env python3
"""How good the choice of plans is: every plan's time beside that of the one that is chosen.

  plans.py --programs DIR [--rounds 3] [--seconds 0.1] [--collective allReduce] [--only WORD]

For each transport and number of ranks every plan is run in turn, with data that was just written; then comes a table: the time
of the plan that is chosen over the time of the best one, 1.00 where the best is chosen. It is what the constants in
the transports' cost() are held against.
"""

import argparse
import collections
import json
import os
import shutil
import statistics
import subprocess
import tempfile

from pages import size_text, table, time_text

SIZES = [4, 64, 512, 2048, 8192, 16384, 32768, 65536, 131072, 262144, 1048576]
PLANS = {
    "allReduce": ["oneshot", "twoshot", "doubling", "tree", "star", "ring"],
    "allGather": ["twoshot", "ring", "star"],
    "scatterReduce": ["twoshot", "ring", "star"],
    "broadcast": ["ring", "tree", "star"],
}
WORLDS = [(transport, ranks) for transport in ("p2p", "tcp") for ranks in (2, 4, 8)]


def run(program, transport, ranks, plan, options):
    """Microseconds by size."""
    folder = tempfile.mkdtemp(prefix="plans-", dir="/dev/shm")
    command = [program, "--ranks", str(ranks), "--transport", transport, "--collective", options.collective, "--fresh"]
    command += ["--seconds", str(options.seconds), "--sizes", ",".join(map(str, SIZES)), "--folder", folder]
    environment = dict(os.environ, RINGCCL_ALGORITHM=plan, RINGCCL_LOG="warn")
    out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout
    shutil.rmtree(folder, ignore_errors=True)
    return {line["bytes"]: line["median_us"] for line in map(json.loads, out.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--collective", default="allReduce", choices=PLANS)
    parser.add_argument("--only", default="", help="of the worlds ('tcp, 4 ranks') only those with this word in their name")
    options = parser.parse_args()
    program = os.path.join(options.programs, "contest_ringccl")
    rows = []
    for transport, ranks in WORLDS:
        name = f"{transport}, {ranks} ranks"
        if options.only not in name:
            continue
        times = collections.defaultdict(lambda: collections.defaultdict(list))  # plan: {bytes: [microseconds]}
        for _ in range(options.rounds):
            for plan in ["auto"] + PLANS[options.collective]:
                for size, us in run(program, transport, ranks, plan, options).items():
                    times[plan][size].append(us)
        cells = []
        for size in SIZES:
            median = {plan: statistics.median(own[size]) for plan, own in times.items()}
            chosen = median.pop("auto")
            best = min(median, key=median.get)
            cells.append(f"**{max(1, chosen / median[best]):.2f}** {time_text(chosen)}, {best} {time_text(median[best])}")
        rows.append([name, *cells])
    print("\n".join(table([options.collective, *map(size_text, SIZES)], rows)))


if __name__ == "__main__":
    main()
