#!/usr/bin/env python3
"""Makes tables of what fault_bench and peers/measure.py told.

  tables.py --faults LIST.json --ringccl RUNS.jsonl [--peers RUNS.jsonl] [--missing "Gloo: why"]... [--page PAGE.md]

Prints them; with --page they replace what stands between the page's two markers.
"""

import argparse
import collections
import json
import os
import platform
import re
import statistics

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# ringResult_t
EXPECTED = {0: "ringSuccess", 6: "ringRemoteError", 8: "ringTimeout", 9: "ringMismatch"}


def load(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def number(ms):
    return f"{ms:.2f}" if ms < 1 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def spread(values):
    """Median and worst."""
    return f"{number(statistics.median(values))} / {number(max(values))}" if values else "-"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def machine():
    with open("/proc/cpuinfo") as file:
        virtual = " hypervisor" in file.read()
    cpus = len(os.sched_getaffinity(0))
    kind = "a virtual machine" if virtual else "a machine"
    return f"{kind} with {cpus} CPUs, Linux {platform.release().split('-')[0]}"


# ---- ringccl ------------------------------------------------------------------------------------------------------------


def answers(seats, expected=None):
    """The codes, with how often, if there is more than one. What was not expected stands out."""
    found = collections.Counter(seat["answer"] for seat in seats)
    words = []
    for answer, times in found.most_common():
        text = {"none": "no answer", "exit": "(it has ended)"}.get(answer, f"`{answer}`")
        if expected and answer != expected:
            text = f"**{text}**"
        words.append(text if len(found) == 1 else f"{text} {times} of {len(seats)}")
    return ", ".join(words)


def naming(seats):
    told = [seat for seat in seats if "named" in seat]
    yes = sum(seat["named"] for seat in told)
    return "-" if not told else "yes" if yes == len(told) else "no" if yes == 0 else f"{yes} of {len(told)}"


def last_answers(runs):
    """Per run, when the last of the others had answered; and how many runs had one that did not."""
    times, silent = [], 0
    for run in runs:
        seats = run["others"]
        if all("ms" in seat for seat in seats):
            times.append(max(seat["ms"] for seat in seats))
        else:
            silent += 1
    return times, silent


def time_cell(runs):
    if not runs:
        return "-"
    times, silent = last_answers(runs)
    return ", ".join(([spread(times)] if times else []) + ([f"**none in {silent} of {len(runs)}**"] if silent else []))


def left_cell(runs):
    seats = [seat for run in runs for seat in run["others"] + ([run["self"]] if "self" in run else []) if "left" in seat]
    words = []
    for what, of in (("descriptors", "descriptors"), ("threads", "threads"), ("mappings", "shared mappings")):
        more = [seat["left"][what] for seat in seats if seat["left"][what] > 0]
        if more:
            words.append(f"**up to {max(more)} {of} ({len(more)} of {len(seats)})**")
    names = sum(bool(run["names"]) for run in runs)
    if names:
        words.append(f"**names in {names} of {len(runs)} runs**")
    stuck = sum(seat.get("destroy") == "none" for run in runs for seat in run["others"])
    if stuck:
        words.append(f"**{stuck} calls of ringCommDestroy**")
    return ", ".join(words) or "nothing"


def others_table(faults, runs, columns):
    heads = ["what one rank does or suffers", "the others answer", "naming it"]
    heads += [f"{transport}, {ranks} ranks" for transport, ranks in columns] + ["ringCommDestroy", "left behind"]
    rows = []
    for fault in faults:
        mine = [run for run in runs if run["fault"] == fault["fault"]]
        if not mine:
            continue
        seats = [seat for run in mine for seat in run["others"]]
        clean = fault["fault"] == "nothing"
        row = [fault["text"], answers(seats, EXPECTED[mine[0]["expected"]]), "" if clean else naming(seats)]
        for transport, ranks in columns:
            cell = [run for run in mine if (run["transport"], run["ranks"]) == (transport, ranks)]
            row.append("" if clean else time_cell(cell))
        row += [spread([seat["destroy_ms"] for seat in seats if "destroy_ms" in seat]), left_cell(mine)]
        rows.append(row)
    return table(heads, rows)


def self_table(faults, runs):
    rows = []
    for fault in faults:
        seats = [run["self"] for run in runs if run["fault"] == fault["fault"] and "self" in run]
        if fault["fault"].startswith(("kill", "exit", "nothing")) or not seats:
            continue
        # These wait for the others first.
        times = "" if fault["fault"] in ("stop", "absent") else spread([seat["ms"] for seat in seats if "ms" in seat])
        rows.append([fault["text"], answers(seats), times])
    return table(["what it does or suffers", "it answers", "after"], rows)


def texts(faults, runs):
    rows = []
    for fault in faults:
        for run in runs:
            said = [seat["text"] for seat in run["others"] if seat.get("text")] if run["fault"] == fault["fault"] else []
            if said:
                text = said[0].replace("|", "\\|")
                rows.append([fault["text"], text if len(text) < 320 else text[:320] + " ..."])
                break
    return table(["what one rank does or suffers", "what another one reads, in one of the runs"], rows)


def ringccl_part(faults, runs):
    failed = [run for run in runs if "failed" in run]
    runs = [run for run in runs if "failed" not in run]
    columns = sorted({(run["transport"], run["ranks"]) for run in runs})
    count = max(collections.Counter((run["fault"], run["transport"], run["ranks"]) for run in runs).values())
    aborts = [run["self"]["abort_ms"] for run in runs if run["fault"] == "abort" and "abort_ms" in run["self"]]
    wrong = sum("wrong_data" in seat for run in runs for seat in run["others"])
    parts = [
        f"Milliseconds, median / worst of {count} runs, from the fault until the last of the other ranks had its answer.",
        others_table(faults, runs, columns),
        "What the rank itself answers, all transports and world sizes together:",
        self_table(faults, runs),
    ]
    if aborts:
        parts.append(f"`ringCommAbort` itself took {spread(aborts)} ms (median / worst of {len(aborts)}).")
    parts.append(f"Of the calls that succeeded, {wrong or 'none'} gave a wrong result.")
    if failed:
        reasons = collections.Counter(run["failed"] for run in failed)
        parts.append("Runs that did not come to their fault: " + "; ".join(f"{n}: {why}" for why, n in reasons.items()) + ".")
    parts += ["What it sounds like:", texts(faults, runs)]
    return "\n\n".join(parts)


# ---- the others ---------------------------------------------------------------------------------------------------------

FAULT_WORDS = {"kill": "killed", "stop": "stopped", "count": "one element more"}


def some(counts, of):
    low, high = min(counts), max(counts)
    return f"{high} of {of}" if low == high else f"{low} to {high} of {of}"


def plain(text):
    """An error's first words, without where in its sources a library found it."""
    text = re.sub(r"^\[[^\]]*\] ", "", text)
    text = re.sub(r"\[?[0-9.]+\]?:\d+", "ADDRESS", text)
    return re.split(r", error stack|: ADDRESS| ADDRESS", text)[0].strip()


def peer_row(title, handling, fault, runs, long_runs):
    ranks = runs[0]["ranks"]
    survivors = ranks if fault == "count" else ranks - 1
    got, after, job = [], [], []
    answered = [len(run.get("answers", [])) for run in runs]
    if any(answered):
        said = collections.Counter(plain(a["text"]) for run in runs for a in run["answers"])
        got.append(f"an error on {some(answered, survivors)} ranks (\"{said.most_common(1)[0][0]}\")")
        after.append("error: " + spread([max(a["ms"] for a in run["answers"]) for run in runs if run["answers"]]))
    died = [run["died"] for run in runs if run.get("died")]
    aborted = [[d for d in dead if d["status"] < 0] for dead in died]
    if any(aborted):
        got.append(
            f"a signal from their own library ended {some([len(dead) for dead in aborted if dead], survivors)} ranks, in "
            f"{sum(map(bool, aborted))} of {len(runs)} runs"
        )
    finished = sum(len(run["finished"]) == survivors for run in runs)
    if finished:
        got.append(f"no error at all, in {finished} of {len(runs)} runs")
    wrong = sum(run.get("wrong", 0) > 0 for run in runs)
    if wrong:
        got.append(f"success with a wrong result, in {wrong} of {len(runs)} runs")
    ended = [run["launcher_ms"] for run in runs if "launcher_ms" in run and len(run["finished"]) < survivors]
    if ended:
        job.append("ended by the launcher" + ("" if len(ended) == len(runs) else f" in {len(ended)} of {len(runs)} runs"))
        after.append("end: " + spread(ended))
    hung = sum(run["hung"] for run in runs)
    if hung:
        words = f"hung, {hung} of {len(runs)} runs, until ended after {runs[0]['limit_s']:g} s"
        for run in long_runs:
            late = [a["ms"] for a in run.get("answers", []) if a["ms"] > runs[0]["limit_s"] * 1000]
            if run["hung"]:
                words += f"; also in one of {run['limit_s']:g} s"
            elif late:
                words += f"; given {run['limit_s']:g} s the last rank got an error after {max(late) / 1000:.1f} s"
        job.append(words)
    left = max(run.get("left", 0) for run in runs)
    names = sum(bool(run.get("names")) for run in runs)
    remains = ([f"{left} processes"] if left else []) + ([f"names in /dev/shm, {names} of {len(runs)} runs"] if names else [])
    naming = [run["output_names"] or any(a["named"] for a in run.get("answers", [])) for run in runs]
    named = "yes" if all(naming) else "no" if not any(naming) else f"{sum(naming)} of {len(runs)} runs"
    if "died" in runs[0]:
        job.append("no launcher")
    return [title, handling, FAULT_WORDS[fault], "; ".join(got) or "no answer", ", ".join(after) or "-", named,
            "; ".join(job) or "goes on", ", ".join(remains) or "nothing"]  # fmt: skip


def own_rows(runs):
    rows = []
    for transport in ("p2p", "tcp"):
        for fault in FAULT_WORDS:
            mine = [r for r in runs if (r["fault"], r["transport"], r["ranks"]) == (fault, transport, 4) and "failed" not in r]
            if not mine:
                continue
            seats = [seat for run in mine for seat in run["others"] + ([run["self"]] if fault == "count" else [])]
            others = [seat for run in mine for seat in run["others"]]
            rows.append([f"ringccl, {transport}", "", FAULT_WORDS[fault], answers(seats), time_cell(mine), naming(others),
                         "goes on as the program decides", left_cell(mine)])  # fmt: skip
    return rows


def peers_part(runs, own):
    titles = next(run["versions"] for run in runs if "versions" in run)
    runs = [run for run in runs if "versions" not in run]
    failed = sum("failed" in run for run in runs)
    runs = [run for run in runs if "failed" not in run]
    short = min(run["limit_s"] for run in runs)
    cases = collections.defaultdict(lambda: ([], []))
    for run in runs:
        cases[run["peer"], run["handling"], run["fault"]][run["limit_s"] > short].append(run)
    words = {"default": "the default", "return": "MPI_ERRORS_RETURN"}
    rows = own_rows(own)
    for (peer, handling, fault), (usual, long_runs) in cases.items():
        handling = "exceptions" if peer == "gloo" else words[handling]
        rows.append(peer_row(titles[peer], handling, fault, usual, long_runs))
    heads = ["library", "errors", "one rank is", "the surviving ranks got", "ms after the fault", "naming it", "the job",
             "left behind"]  # fmt: skip
    count = max(len(usual) for usual, _ in cases.values())
    note = f"\n\nRuns that did not come to their fault: {failed}." if failed else ""
    return f"4 ranks; {count} runs of each case of the others.\n\n" + table(heads, rows) + note


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", required=True)
    parser.add_argument("--ringccl", required=True)
    parser.add_argument("--peers")
    parser.add_argument("--missing", action="append", default=[])
    parser.add_argument("--page")
    options = parser.parse_args()
    with open(options.faults) as file:
        faults = json.load(file)
    own = load(options.ringccl)
    parts = [f"Measured on {machine()}.", "### ringccl", ringccl_part(faults, own)]
    peers = load(options.peers) if options.peers else []
    if len(peers) > 1:
        parts += ["### Beside it, other libraries", peers_part(peers, own)]
    parts += [f"Not measured: {why}." for why in options.missing]
    text = "\n\n".join(parts)
    if not options.page:
        print(text)
        return
    with open(options.page) as file:
        page = file.read()
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    with open(options.page, "w") as file:
        file.write(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
