"""Runs a command on a Ray cluster of two nodes on this machine while workers and a node die.

    build/cluster/bin/python tests/python/cluster_kills.py PROGRAM KILLS SECONDS COMMAND STEM ...

The last words are those of cluster.Work. KILLS workers are killed while the program runs below
them, one every SECONDS, and the second node after half of them. Prints one line of JSON: status,
standard output and errors, how many workers died.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from plumbline import cluster

DEAD_WITHIN_S = 120


def parent_of(process: Path) -> int:
    """Process id of the parent; 0 where it has ended."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def busy_workers(program: str, session: int) -> list[int]:
    """The workers of this cluster below which the program runs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            is_part = program.encode() in words[:2] and b"--shard" in words  # or of a script
            belongs = f"PLUMB_TEST_CLUSTER={session}".encode() in (process / "environ").read_bytes()
        except OSError:
            continue
        if is_part and belongs:
            found.append(parent_of(process))
    return [pid for pid in found if pid > 1]


class Killer(threading.Thread):
    """Kills until it has killed as often as it should, or it is told to end."""

    def __init__(self, nodes: Cluster, program: str, kills: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.nodes, self.program, self.kills, self.pause = nodes, program, kills, pause
        self.killed: set[int] = set()
        self.lost_node = False
        self.ends = threading.Event()
        self.random = random.Random(7)

    def run(self) -> None:
        """The thread."""
        while not self.ends.is_set() and len(self.killed) < self.kills:
            workers = [pid for pid in busy_workers(self.program, os.getpid())
                       if pid not in self.killed]
            if not workers:
                time.sleep(0.01)
                continue
            victim = self.random.choice(workers)
            os.kill(victim, signal.SIGKILL)
            self.killed.add(victim)
            if not self.lost_node and len(self.killed) * 2 >= self.kills:
                self.lost_node = True
                self.nodes.remove_node(self.nodes.list_all_nodes()[1], allow_graceful=False)
            time.sleep(self.pause)


def main() -> int:
    """Runs the command and the killer side by side."""
    program, kills, pause, command, stem, *words = sys.argv[1:]
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PLUMB_TEST_CLUSTER=str(os.getpid()))
    options = {"num_cpus": 1, "object_store_memory": 80 << 20}
    nodes = Cluster(initialize_head=True, head_node_args=options)
    try:
        nodes.add_node(**options)
        ray.init(nodes.address, log_to_driver=False, logging_level=logging.ERROR)
        nodes.wait_for_nodes()
        killer = Killer(nodes, program, int(kills), float(pause))
        killer.start()
        work = cluster.Work(command, words, stem)
        done = cluster.run(cluster.Where(nodes.address), program, work, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
        killer.ends.set()
        killer.join()
        limit = time.monotonic() + DEAD_WITHIN_S
        while killer.lost_node and sum(node["Alive"] for node in ray.nodes()) > 1:
            assert time.monotonic() < limit, "the node that was removed does not count as dead"
            time.sleep(0.2)
        print(json.dumps({"status": done.returncode, "stdout": done.stdout,
                          "stderr": done.stderr, "killed": len(killer.killed),
                          "lost_node": killer.lost_node}))
    finally:
        ray.shutdown()
        nodes.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
