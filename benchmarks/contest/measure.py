#!/usr/bin/env python3
"""Runs all contenders in turn, again and again, and prints a line of JSON per measured cell.

  measure.py --programs DIR [--rounds 5] [--seconds 0.3] [--only WORD] [--largest BYTES]

A table is one collective of one type in one world. In each of its rounds every contender's program is started once and goes
through all sizes, so what disturbs the machine disturbs all of them. A library with several settings tries all in the first
round; later only those that were its best at some size. A program that is not done in time is ended, and what it has printed
until then counts.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CPUS = len(os.sched_getaffinity(0))
SIZES = (4, 64, 512, 2048, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20)
FEWER_SIZES = (1024, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20)
LAUNCH_S = 16  # to start, to settle and to end

# By collective: the parameter of Open MPI's tuned component, and the algorithms that are worth trying.
OPENMPI_ALGORITHMS = {
    "allReduce": ("allreduce", (3, 4, 5, 6)),
    "allGather": ("allgather", (3, 4, 5)),
    "scatterReduce": ("reduce_scatter_block", (2, 3)),
    "broadcast": ("bcast", (3, 6, 8)),
    "alltoall": ("alltoall", (1, 2)),
}


class Table:
    def __init__(self, transport, ranks, collective="allReduce", kind="float32", sizes=SIZES, odd=0, fresh=False):
        self.transport, self.ranks, self.collective, self.kind = transport, ranks, collective, kind
        self.sizes, self.odd, self.fresh = sizes, odd, fresh
        self.crowded = ranks > CPUS

    def name(self):
        how = ", misaligned" if self.odd else ", fresh" if self.fresh else ""
        return f"{self.collective} {self.kind}{how}, {self.transport}, {self.ranks} ranks"

    def arguments(self, seconds, largest):
        sizes = [size for size in self.sizes if size <= largest]
        return [
            "--collective", self.collective, "--type", self.kind, "--seconds", str(seconds), "--odd", str(self.odd),
            "--sizes", ",".join(map(str, sizes)), *(["--fresh"] if self.fresh else []),
        ]  # fmt: skip


class Setting:
    """One way to start one library's program."""

    def __init__(self, library, name, command, environment=None):
        self.library, self.name, self.command, self.environment = library, name, command, environment or {}


def forked(library, name, program, table, transport, *more):
    return Setting(library, name, [program, "--ranks", str(table.ranks), "--transport", transport, *more])


def openmpi(program, table):
    base = ["mpirun.openmpi", "--allow-run-as-root", "-np", str(table.ranks), "--oversubscribe"]
    base += ["--bind-to", "none" if table.crowded else "core", "--mca", "pml", "ob1"]
    base += ["--mca", "btl", "vader,self" if table.transport == "p2p" else "tcp,self"]
    if table.transport == "tcp":
        base += ["--mca", "btl_tcp_if_include", "lo"]
    if table.crowded:
        base += ["--mca", "mpi_yield_when_idle", "1"]
    yield Setting("Open MPI", "default", base + [program])
    parameter, algorithms = OPENMPI_ALGORITHMS[table.collective]
    for number in algorithms:
        forced = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", f"coll_tuned_{parameter}_algorithm", str(number)]
        yield Setting("Open MPI", f"algorithm {number}", base + forced + [program])


def mpich(program, table):
    base = ["mpiexec.mpich", "-n", str(table.ranks)]
    if not table.crowded:
        base += ["-bind-to", "core"]
    if table.transport == "tcp":
        environment = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "MPIR_CVAR_NOLOCAL": "1"}
        yield Setting("MPICH", "UCX", base + [program], environment)
        return
    yield Setting("MPICH", "default", base + [program])
    if table.collective in ("allReduce", "broadcast"):
        word = "ALLREDUCE" if table.collective == "allReduce" else "BCAST"
        how = {f"MPIR_CVAR_{word}_POSIX_INTRA_ALGORITHM": "release_gather"}
        yield Setting("MPICH", "release_gather", base + [program], how)


def settings(table, programs):
    def program(name):
        path = os.path.join(programs, name)
        return path if os.access(path, os.X_OK) else None

    yield forked("ringccl", "malloc", program("contest_ringccl"), table, table.transport)
    if table.transport == "p2p":
        yield forked("ringccl, ringMemAlloc", "ringMemAlloc", program("contest_ringccl"), table, "p2p", "--library-memory")
    if table.odd:
        return
    if table.kind == "float32":
        if program("contest_openmpi"):
            yield from openmpi(program("contest_openmpi"), table)
        if program("contest_mpich"):
            yield from mpich(program("contest_mpich"), table)
        if program("contest_gloo"):
            yield forked("Gloo", "TCP", program("contest_gloo"), table, "tcp")
    if table.kind == "float32" and table.collective == "allReduce":
        if table.transport == "p2p":
            for how in ("once", "shared", "streamed"):
                yield forked("limit", how, program("limit_memory"), table, how)
        elif table.ranks == 2:
            yield forked("limit", "socket", program("limit_socket"), table, "tcp")


def tables():
    for transport in ("p2p", "tcp"):
        for ranks in (2, 4, 8):
            yield Table(transport, ranks)
    for transport in ("p2p", "tcp"):
        yield Table(transport, 2, kind="bfloat16", sizes=FEWER_SIZES)
        yield Table(transport, 2, sizes=FEWER_SIZES, odd=3)
    for ranks in (2, 4):
        yield Table("p2p", ranks, sizes=FEWER_SIZES, fresh=True)
    for collective in ("allGather", "scatterReduce", "broadcast", "alltoall"):
        for transport, ranks in (("p2p", 2), ("p2p", 4), ("tcp", 2)):
            yield Table(transport, ranks, collective, sizes=FEWER_SIZES)
        yield Table("p2p", 2, collective, sizes=FEWER_SIZES, fresh=True)


def launch(setting, table, seconds, largest):
    """Lines that the program printed, and why there are no more."""
    home = "/dev/shm" if setting.library == "limit" else None
    folder = tempfile.mkdtemp(prefix="contest-", dir=home)
    environment = dict(os.environ, **setting.environment, RINGCCL_LOG="warn", OMPI_MCA_btl_base_warn_component_unused="0")
    command = setting.command + table.arguments(seconds, largest)
    if setting.command[0].endswith(("contest_ringccl", "contest_gloo", "limit_memory", "limit_socket")):
        command += ["--folder", folder]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    limit = LAUNCH_S + 4 * seconds * len(table.sizes) + (20 if table.crowded else 5)
    why = None
    try:
        out, err = process.communicate(timeout=limit)
        if process.returncode != 0:
            why = (err.strip().splitlines() or ["no word"])[-1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        why = f"ended after {limit:.0f} s"
    shutil.rmtree(folder, ignore_errors=True)
    lines = []
    for line in out.splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            pass  # cut off in the middle
    return lines, why


def compare(table, programs, rounds, seconds, largest):
    candidates = list(settings(table, programs))
    for number in range(rounds):
        best = {}  # (library, bytes): (microseconds, setting)
        for setting in candidates:
            lines, why = launch(setting, table, seconds, largest)
            if why:
                print(f"{table.name()}: {setting.library} ({setting.name}): {why}", file=sys.stderr)
                if setting.library.startswith(("ringccl", "limit")):
                    sys.exit(1)  # others may fail; we may not
            for line in lines:
                cell = {"table": table.name(), "transport": table.transport, "ranks": table.ranks, "odd": table.odd, "fresh": table.fresh}
                cell |= {"collective": table.collective, "type": table.kind, "round": number}
                cell |= {"library": setting.library, "setting": setting.name}
                print(json.dumps(cell | line), flush=True)
                key = (setting.library, line["bytes"])
                best[key] = min(best.get(key, (float("inf"), "")), (line["median_us"], setting.name))
        if number == 0:
            kept = {(library, name) for (library, _), (_, name) in best.items()}
            candidates = [one for one in candidates if (one.library, one.name) in kept]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--only", default="", help="of the tables only those with this word in their name")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="of the sizes, in bytes")
    options = parser.parse_args()
    began = time.monotonic()
    for table in tables():
        if options.only not in table.name():
            continue
        print(f"[{time.monotonic() - began:6.0f} s] {table.name()}", file=sys.stderr)
        compare(table, options.programs, options.rounds, options.seconds, options.largest)


if __name__ == "__main__":
    main()
