"""Hosts that this machine plays: network namespaces, each with one shaped link to a switch."""

import os
import subprocess


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


class Network:
    """`mbits` per host. Used with `with`; leaves nothing behind. Needs root."""

    def __init__(self, mbits):
        self.prefix = f"rcb{os.getpid()}"
        self.mbits = mbits

    def host(self, number):
        return f"{self.prefix}h{number}"

    def address(self, number):
        return f"10.99.0.{number + 1}"

    def inside(self, number, words):
        return ["ip", "netns", "exec", self.host(number), *words]

    def __enter__(self):
        try:
            self.build()
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise SystemExit(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error
        return self

    def build(self):
        switch = f"{self.prefix}s"
        run("ip", "netns", "add", switch)
        run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", switch, "link", "set", "bridge", "up")
        for number, mbits in enumerate(self.mbits):
            host, port = self.host(number), f"port{number}"
            run("ip", "netns", "add", host)
            run("ip", "-n", host, "link", "set", "lo", "up")
            run("ip", "link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", port, "netns", switch)
            run("ip", "-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            run("ip", "-n", switch, "link", "set", port, "master", "bridge")
            for space, device in ((host, "eth0"), (switch, port)):
                # Both directions of a link: what leaves the host and what leaves the switch.
                run("tc", "-n", space, "qdisc", "add", "dev", device, "root",
                    "tbf", "rate", f"{mbits}mbit", "burst", "128kb", "latency", "50ms")  # fmt: skip
                run("ip", "-n", space, "link", "set", device, "up")

    def __exit__(self, *_):
        spaces = [f"{self.prefix}s", *(self.host(number) for number in range(len(self.mbits)))]
        for space in spaces:
            run("ip", "netns", "del", space, check=False)
