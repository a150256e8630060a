#!/usr/bin/env python3
"""The classic argument for the ring, on real sockets: hosts with 1 Gbit/s links add up a vector by the ring and by a star
(one rank receives, adds and sends all, as a parameter server does).

  scaling.py --perf BIN/allreduce_perf [--docs DIR] [--hosts 8] [--rounds 3]

Prints tables; with --docs they go into DIR/performance.md between their marks, the plot and the numbers beside it. The hosts
are network namespaces of this machine, so they share its CPUs but not their links.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from network import Network  # noqa: E402

MIB = 16
BYTES = MIB << 20
GBIT, SLOW = 1000, 200  # Mbit/s
CALLS = 5
LIMIT_S = 120


def goodput(network):
    """Bytes a second of one TCP connection each way at once between two hosts, as iperf3 sees them: the slower direction."""
    server = subprocess.Popen(network.inside(1, ["iperf3", "-s", "-1"]), stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        words = ["iperf3", "-c", network.address(1), "--bidir", "-t", "4", "-O", "1", "-J"]
        out = json.loads(subprocess.run(network.inside(0, words), capture_output=True, text=True, timeout=30).stdout)
        ways = [out["end"][key]["bits_per_second"] for key in ("sum_received", "sum_received_bidir_reverse")]
        return min(ways) / 8
    finally:
        server.kill()
        server.wait()


def measure(network, perf, hosts, algorithm):
    """Seconds per call, and bytes that the busiest rank sent in it."""
    with tempfile.TemporaryDirectory(prefix="ringccl-scaling-") as folder:
        result = os.path.join(folder, "result.json")
        words = [perf, "-b", str(BYTES), "-e", str(BYTES), "-n", str(CALLS), "-w", "1", "-a", "3", "-c", "1"]
        ranks = []
        for rank in range(hosts):
            environment = dict(
                os.environ,
                RINGCCL_RANK=str(rank),
                RINGCCL_WORLD_SIZE=str(hosts),
                RINGCCL_ROOT=f"{network.address(0)}:7000",
                RINGCCL_HOST_ID=network.host(rank),
                RINGCCL_TRANSPORT="tcp",
                RINGCCL_ALGORITHM=algorithm,
            )
            more = ["--json", result] if rank == 0 else []
            ranks.append(
                subprocess.Popen(
                    network.inside(rank, words + more), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                )
            )
        try:
            for rank in ranks:
                _, said = rank.communicate(timeout=LIMIT_S)
                if rank.returncode != 0:
                    raise SystemExit(f"{algorithm} on {hosts} hosts: {said.decode().strip()}")
        finally:
            for rank in ranks:
                rank.kill()
        with open(result) as file:
            row = json.load(file)["rows"][0]["out_of_place"]
        if row["wrong"]:
            raise SystemExit(f"{algorithm} on {hosts} hosts: {row['wrong']} wrong elements")
        return row["time_us"] / 1e6, row["sent_bytes_per_call"]


def sent_in_theory(algorithm, n):
    """By the rank that sends most; in a star it receives as much too."""
    return (2 * (n - 1) / n if algorithm == "ring" else n - 1) * BYTES


def least_seconds(algorithm, n, speed, slow_link=False):
    """What the busiest link takes: of the ring any, the slowest first; of the star the centre's, which is a fast one."""
    least = sent_in_theory(algorithm, n) / speed
    if not slow_link:
        return least
    slow = speed * SLOW / GBIT
    return sent_in_theory(algorithm, n) / slow if algorithm == "ring" else max(least, BYTES / slow)


def plot(rows, speed, file):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ringccl"
    from matplotlib import pyplot

    figure, (times, sent) = pyplot.subplots(1, 2, figsize=(9, 3.8))
    for algorithm, color in (("ring", "tab:blue"), ("star", "tab:orange")):
        own = [row for row in rows if row["algorithm"] == algorithm and not row["slow_link"]]
        ns = [row["hosts"] for row in own]
        times.plot(ns, [row["seconds"] * 1e3 for row in own], "o-", color=color, label=f"{algorithm}, measured")
        least = [least_seconds(algorithm, n, speed) * 1e3 for n in ns]
        times.plot(ns, least, ":", color=color, label=f"{algorithm}, in theory")
        sent.plot(ns, [row["sent"] / 2**20 for row in own], "o-", color=color, label=f"{algorithm}, measured")
        sent.plot(ns, [sent_in_theory(algorithm, n) / 2**20 for n in ns], ":", color=color, label=f"{algorithm}, in theory")
    times.set_ylabel("milliseconds per allReduce")
    sent.set_ylabel("MiB sent by the busiest rank")
    for axes in (times, sent):
        axes.set_xlabel("hosts")
        axes.set_ylim(bottom=0)
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=8)
    figure.suptitle(f"allReduce of {MIB} MiB, links of 1 Gbit/s", fontsize=10)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def page_of(rows, speed):
    lines = [
        f"One TCP connection between two of the hosts carries {speed * 8 / 1e6:.0f} Mbit/s each way at once (iperf3).",
        "",
        "| hosts | plan | time | in theory | busbw | of iperf3 | sent by the busiest rank | in theory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        n, algorithm = row["hosts"], row["algorithm"]
        busbw = 2 * (n - 1) / n * BYTES / row["seconds"]
        least = least_seconds(algorithm, n, speed, row["slow_link"])
        name = f"{n}, one link at {SLOW} Mbit/s" if row["slow_link"] else str(n)
        lines.append(
            f"| {name} | {algorithm} | {row['seconds'] * 1e3:.0f} ms | {least * 1e3:.0f} ms "
            f"| {busbw * 8 / 1e6:.0f} Mbit/s | {busbw / speed:.0%} | {row['sent'] / 2**20:.1f} MiB "
            f"| {sent_in_theory(algorithm, n) / 2**20:.1f} MiB |"
        )
    return lines


def write_docs(folder, rows, speed):
    with open(os.path.join(folder, "scaling.json"), "w") as out:
        json.dump({"iperf3_bytes_per_second": speed, "rows": rows}, out, indent=1)
        out.write("\n")
    plot(rows, speed, os.path.join(folder, "scaling.svg"))
    path = os.path.join(folder, "performance.md")
    with open(path) as file:
        old = file.read()
    begin, end = "<!-- scaling: begin -->", "<!-- scaling: end -->"
    text = "\n".join([*page_of(rows, speed), "", "![Ring and star](scaling.svg)"])
    with open(path, "w") as file:
        file.write(old[: old.index(begin)] + begin + "\n\n" + text + "\n\n" + old[old.index(end) :])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--perf", required=True)
    parser.add_argument("--docs")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("network namespaces need root")

    rows = []
    worlds = [([GBIT] * n, False) for n in range(2, options.hosts + 1)] + [([GBIT, GBIT, SLOW, GBIT], True)]
    speed = None
    for mbits, slow_link in worlds:
        with Network(mbits) as network:
            speed = speed or goodput(network)
            taken = {"ring": [], "star": []}
            for _ in range(options.rounds):
                for algorithm, own in taken.items():
                    own.append(measure(network, options.perf, len(mbits), algorithm))
        for algorithm, own in taken.items():
            seconds = statistics.median(one[0] for one in own)
            rows.append({"hosts": len(mbits), "slow_link": slow_link, "algorithm": algorithm,
                         "seconds": seconds, "sent": own[0][1]})  # fmt: skip
            print(f"{len(mbits)} hosts{' (one slow)' if slow_link else ''}, {algorithm}: {seconds * 1e3:.0f} ms", file=sys.stderr)
    if options.docs:
        write_docs(options.docs, rows, speed)
    else:
        print("\n".join(page_of(rows, speed)))


if __name__ == "__main__":
    main()
