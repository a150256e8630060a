#!/usr/bin/env python3
"""Makes of measure.py's lines what people read.

  pages.py LINES.jsonl                    prints the tables
  pages.py LINES.jsonl --docs DIR         puts them into DIR/performance.md between its marks, and the plots and the numbers
                                          beside it

Of a library with several settings the one that is its best at a size stands for it there. A ratio is taken within each round,
then the median over the rounds is shown: above 1 ringccl is ahead of the fastest other library.
"""

import argparse
import collections
import json
import os
import platform
import re
import statistics

OURS = ("ringccl", "ringccl, ringMemAlloc")
LIMIT = "limit"
BUS = {
    "allReduce": lambda n: 2 * (n - 1) / n,
    "allGather": lambda n: (n - 1) / n,
    "scatterReduce": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1,
}


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def time_text(us):
    if us >= 9995:
        return f"{us / 1000:.0f} ms"
    if us >= 999.5:
        return f"{us / 1000:.3g} ms"
    return f"{us:.2f} us" if us < 1 else f"{us:.3g} us"


class World:
    """All cells of one table."""

    def __init__(self, name):
        self.name = name
        self.cells = collections.defaultdict(dict)  # (library, bytes, setting): {round: cell}

    def add(self, cell):
        self.about = cell
        self.cells[cell["library"], cell["bytes"], cell["setting"]][cell["round"]] = cell

    def sizes(self):
        return sorted({size for _, size, _ in self.cells})

    def libraries(self):
        names = {library for library, _, _ in self.cells}
        return [*(name for name in OURS if name in names), *sorted(names - {*OURS, LIMIT}), *({LIMIT} & names)]

    def best(self, library, size):
        """The setting with the lowest median, with all its rounds; None if there is none."""
        own = [(key[2], rounds) for key, rounds in self.cells.items() if key[:2] == (library, size)]
        if not own:
            return None, {}
        return min(own, key=lambda one: statistics.median(cell["median_us"] for cell in one[1].values()))

    def number(self, library, size, key):
        _, rounds = self.best(library, size)
        return statistics.median(cell[key] for cell in rounds.values()) if rounds else None

    def bus_gbs(self, library, size):
        us = self.number(library, size, "median_us")
        if us is None:
            return None
        return self.number(library, size, "moved") / us / 1000 * BUS[self.about["collective"]](self.about["ranks"])

    def cpu_s_per_gb(self, library, size):
        seconds = self.number(library, size, "cpu_s_per_call")
        return None if seconds is None else seconds / (self.number(library, size, "moved") / 1e9)

    def peers(self):
        return [name for name in self.libraries() if name not in OURS and name != LIMIT]

    def ratio(self, ours, size, others):
        """How many times as long the fastest of the others takes: median over rounds; and which that is."""
        _, mine = self.best(ours, size)
        found = []
        for other in others:
            _, theirs = self.best(other, size)
            both = [theirs[number]["median_us"] / mine[number]["median_us"] for number in mine.keys() & theirs.keys()]
            if both:
                found.append((statistics.median(both), other))
        return min(found) if found else (None, None)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def text_of(world):
    sizes, lines = world.sizes(), [f"### {world.name}", ""]
    head = [size_text(size) for size in sizes]

    def row(name, cell):
        return [name, *(cell(size) for size in sizes)]

    def time_cell(library):
        def cell(size):
            median, late = (world.number(library, size, key) for key in ("median_us", "p99_us"))
            return "-" if median is None else f"{time_text(median)} ({time_text(late)})"

        return cell

    lines += table(["median (p99)", *head], [row(name, time_cell(name)) for name in world.libraries()])

    def ratio_cell(ours, others):
        def cell(size):
            ratio, other = world.ratio(ours, size, others)
            if ratio is None:
                return "-"
            return f"**{ratio:.2f}**" + (f" {other}" if len(others) > 1 else "")

        return cell

    ours = [name for name in OURS if name in world.libraries()]
    rows = []
    if world.peers():
        rows += [row(f"{name} against the fastest peer", ratio_cell(name, world.peers())) for name in ours]
    if LIMIT in world.libraries():
        rows += [row(f"{name} against the limit", ratio_cell(name, [LIMIT])) for name in ours]
    if rows:
        lines += table(["times as fast", *head], rows)

    large = [size for size in sizes if size >= 128 << 10]
    head = [size_text(size) for size in large]

    def plain(value, digits):
        return "-" if value is None else f"{value:.{digits}f}"

    rows = []
    for name in world.libraries():
        bus = [plain(world.bus_gbs(name, size), 2) for size in large]
        cpu = [plain(world.cpu_s_per_gb(name, size), 2) for size in large]
        rows.append([name, *(f"{b} ({c})" for b, c in zip(bus, cpu))])
    return lines + table(["busbw in GB/s (CPU s/GB)", *head], rows)


def plot(world, file):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ringccl"  # the same picture has the same bytes
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name in world.libraries():
        sizes = [size for size in world.sizes() if world.best(name, size)[0]]
        times = [world.number(name, size, "median_us") for size in sizes]
        style = {"linewidth": 2.2} if name in OURS else {"linestyle": ":"} if name == LIMIT else {"linewidth": 1.2}
        axes.plot(sizes, times, marker="o", markersize=3, label=name, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(world.sizes(), [size_text(size) for size in world.sizes()], rotation=30)
    axes.set_ylabel("microseconds, median")
    axes.set_title(world.name, fontsize=10)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def summary_of(world):
    """What the tables show, for programs."""
    cells = []
    for name in world.libraries():
        for size in world.sizes():
            setting, rounds = world.best(name, size)
            if not rounds:
                continue
            cell = {"library": name, "setting": setting, "bytes": size, "rounds": len(rounds)}
            for key in ("median_us", "p99_us"):
                cell[key] = round(world.number(name, size, key), 3)
            cell["busbw_gbs"] = round(world.bus_gbs(name, size), 4)
            cell["cpu_s_per_gb"] = round(world.cpu_s_per_gb(name, size), 3)
            cells.append(cell)
    return {"table": world.name, "cells": cells}


def machine():
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    cpus = len(os.sched_getaffinity(0))
    return f"{cpus} CPUs, {model.group(1) if model else platform.machine()}, Linux {platform.release().split('-')[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines")
    parser.add_argument("--docs")
    options = parser.parse_args()
    worlds = {}
    with open(options.lines) as lines:
        for line in lines:
            cell = json.loads(line)
            worlds.setdefault(cell["table"], World(cell["table"])).add(cell)

    page = [f"Measured on {machine()}.", ""]
    for world in worlds.values():
        page += text_of(world)
        if options.docs and world.about["collective"] == "allReduce" and world.peers() and not world.about["fresh"]:
            name = f"performance-{world.about['transport']}-{world.about['ranks']}.svg"
            plot(world, os.path.join(options.docs, name))
            page += [f"![{world.name}]({name})", ""]
    if not options.docs:
        print("\n".join(page))
        return
    with open(os.path.join(options.docs, "performance.json"), "w") as out:
        json.dump([summary_of(world) for world in worlds.values()], out, indent=1)
        out.write("\n")
    path = os.path.join(options.docs, "performance.md")
    with open(path) as file:
        old = file.read()
    begin, end = "<!-- contest: begin -->", "<!-- contest: end -->"
    head, tail = old[: old.index(begin)], old[old.index(end) :]
    with open(path, "w") as file:
        file.write(head + begin + "\n\n" + "\n".join(page).rstrip() + "\n\n" + tail)


if __name__ == "__main__":
    main()
