#!/usr/bin/env python3
"""Runs jobs of other libraries, lets a fault happen in each, and tells what came of it: one line of JSON per run.

  measure.py [--openmpi PROGRAM] [--mpich PROGRAM] [--gloo PROGRAM] [--ranks 4] [--runs 5] [--short 5] [--long 60]

Every case runs `--runs` times with `--short` seconds after the fault. A case in which a rank had not answered by then runs once
more with `--long` seconds, all such cases at the same time: nothing but their silence is measured there.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

MARK = "RINGCCL_PEER_RUN"  # in the environment of all processes of a run, so that those left over are found
START_S = 30  # for the job to come to its fault
GRACE_S = 1  # for processes to go once their launcher has ended
FAULTS = ("kill", "stop", "count")


class Peer:
    def __init__(self, name, program, commands, handlings):
        self.name = name
        self.program = program
        self.commands = commands  # (folder, fault, handling, victim, seed, ranks) -> list of command lines
        self.handlings = handlings
        self.launched = name != "gloo"


def mpi(name, program, launcher):
    def commands(folder, fault, handling, victim, seed, ranks):
        return [launcher + [str(ranks), program, folder, fault, handling, str(victim), str(seed)]]

    return Peer(name, program, commands, ("default", "return"))


def gloo(program):
    def commands(folder, fault, handling, victim, seed, ranks):
        return [[program, folder, fault, str(rank), str(ranks), str(victim), str(seed)] for rank in range(ranks)]

    return Peer("gloo", program, commands, ("default",))


def members(folder):
    """The living processes of a run."""
    mark = f"{MARK}={folder}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as environment:
                if mark not in environment.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    found.append(int(entry))
        except OSError:
            pass  # it has ended meanwhile
    return found


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


class Events:
    """What the ranks have written so far."""

    def __init__(self, folder, ranks):
        self.fault = None
        self.answers = {}  # rank: (ns, text)
        self.done = {}  # rank: ns
        self.wrong = {}  # rank: calls that succeeded with a wrong result
        self.started = 0
        for rank in range(ranks):
            try:
                with open(os.path.join(folder, f"rank{rank}"), errors="replace") as file:
                    lines = file.read().split("\n")[:-1]
            except OSError:
                continue
            for line in lines:
                word, number, *text = line.split(" ", 2)
                if word == "start":
                    self.started += 1
                elif word == "fault":
                    self.fault = int(number)
                elif word == "answer":
                    self.answers[rank] = (int(number), " ".join(text))
                elif word == "done":
                    self.done[rank] = int(number)
                elif word == "wrong":
                    self.wrong[rank] = self.wrong.get(rank, 0) + 1


def play(peer, fault, handling, victim, seed, ranks, limit_s, alone=True):
    folder = tempfile.mkdtemp(prefix="ringccl-peer-")
    names_before = set(os.listdir("/dev/shm"))
    environment = dict(os.environ, **{MARK: folder})
    output = open(os.path.join(folder, "output"), "wb+")
    jobs = [
        subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        for command in peer.commands(folder, fault, handling, victim, seed, ranks)
    ]
    # With a launcher, its end; without one, the end of each process.
    ended = {}
    begin = time.monotonic()
    # A killed or stopped rank cannot answer; one that called something else can.
    expected = set(range(ranks)) - ({victim} if fault in ("kill", "stop") else set())
    while True:
        for index, job in enumerate(jobs):
            if index not in ended and job.poll() is not None:
                ended[index] = time.monotonic_ns()
        events = Events(folder, ranks)
        told = set(events.answers) | set(events.done) | (set() if peer.launched else set(ended))
        if len(ended) == len(jobs) or expected <= told:
            break
        if events.fault is None:
            late = time.monotonic() > begin + START_S
        else:
            late = time.monotonic_ns() > events.fault + limit_s * 10**9
        if late:
            break
        time.sleep(0.002)

    row = {"peer": peer.name, "fault": fault, "handling": handling, "victim": victim, "ranks": ranks, "limit_s": limit_s}
    row["finished"] = sorted(set(events.done) & expected)
    if peer.launched and ended and events.fault:
        row["launcher_ms"] = (ended[0] - events.fault) / 1e6
        row["launcher_status"] = jobs[0].returncode
    if not peer.launched and events.fault:
        row["died"] = [
            {"rank": r, "ms": (ended[r] - events.fault) / 1e6, "status": jobs[r].returncode}
            for r in sorted(set(ended) & expected - set(events.done))
        ]
    row["hung"] = not ended and not expected <= told if peer.launched else not expected <= told
    if peer.launched:
        # The launcher is asked to end; then everything should be gone.
        if not ended:
            jobs[0].send_signal(signal.SIGTERM)
            try:
                jobs[0].wait(5)
            except subprocess.TimeoutExpired:
                row["launcher_stays"] = True
        time.sleep(GRACE_S)
        row["left"] = len(members(folder))
    send(members(folder), signal.SIGKILL)
    for job in jobs:
        job.wait()
    events = Events(folder, ranks)
    if events.fault is None:
        row["failed"] = "the job did not come to its fault"
    else:
        limit_ns = events.fault + limit_s * 10**9
        row["answers"] = [
            {"rank": rank, "ms": (at - events.fault) / 1e6, "text": text, "named": named(text, victim)}
            for rank, (at, text) in sorted(events.answers.items())
            if at < limit_ns
        ]
        row["wrong"] = len(events.wrong)
    output.seek(0)
    text = output.read().decode(errors="replace")
    output.close()
    row["output_names"] = named(text, victim)
    row["output"] = text[:2000]
    if alone:  # else they may be another run's
        row["names"] = sorted(set(os.listdir("/dev/shm")) - names_before)
    shutil.rmtree(folder, ignore_errors=True)
    return row


def named(text, rank):
    text = re.sub(r"on node \d+ \(rank \d+ in comm \d+\)", "", text)  # this is who speaks
    return bool(re.search(rf"\brank:? {rank}\b|\[rank {rank}\]", text))


def tell(row):
    print(json.dumps(row), flush=True)


def versions(options):
    """The libraries' names as people know them."""
    found = {}
    for name, command in (("openmpi", ["mpirun.openmpi", "--version"]), ("mpich", ["mpiexec.mpich", "--version"])):
        if getattr(options, name):
            text = subprocess.run(command, capture_output=True, text=True).stdout
            number = re.search(r"(?:Version:|\(Open\w* ?\w*\)) *(\S+)", text)
            found[name] = ("Open MPI " if name == "openmpi" else "MPICH ") + (number.group(1) if number else "")
    if options.gloo:
        found["gloo"] = f"Gloo {options.gloo_version}".strip()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("openmpi", "mpich", "gloo"):
        parser.add_argument(f"--{name}", metavar="PROGRAM")
    parser.add_argument("--gloo-version", default="")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--short", type=float, default=5)
    parser.add_argument("--long", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    peers = []
    if options.openmpi:
        as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        peers.append(mpi("openmpi", options.openmpi, ["mpirun.openmpi", *as_root, "--oversubscribe", "-np"]))
    if options.mpich:
        peers.append(mpi("mpich", options.mpich, ["mpiexec.mpich", "-n"]))
    if options.gloo:
        peers.append(gloo(options.gloo))

    tell({"versions": versions(options)})
    dice = random.Random(options.seed)
    silent = []
    for peer in peers:
        for fault in FAULTS:
            for handling in peer.handlings:
                print(f"{peer.name:8} {fault:6} {handling}", file=sys.stderr)
                rows = [
                    play(peer, fault, handling, run % options.ranks, dice.randrange(10**6), options.ranks, options.short)
                    for run in range(options.runs)
                ]
                for row in rows:
                    tell(row)
                if any(row["hung"] for row in rows):
                    silent.append((peer, fault, handling))

    print(f"{len(silent)} cases in which ranks did not answer, once more with {options.long:g} s", file=sys.stderr)
    threads = [
        threading.Thread(target=lambda case=case: tell(play(*case, 1, options.seed, options.ranks, options.long, alone=False)))
        for case in silent
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
