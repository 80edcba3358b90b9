"""The stored figures of partitioned propagation as a page."""

from typing import Any

import exchange
import memory
import speed

Row = dict[str, Any]


def page(stored: Row) -> str:
    """The figures as Markdown."""
    lines = [
        "# Partitioned propagation",
        "",
        "Written by `benchmarks/distributed/propagation.py`. Every process has one thread; values are float32.",
        "",
    ]
    if "speed" in stored:
        lines += _speed(stored["speed"])
    if "memory" in stored:
        lines += _memory(stored["memory"])
    if "exchange" in stored:
        lines += _exchange(stored["exchange"])
    if "huge" in stored:
        lines += _huge(stored["huge"])
    if "gpu" in stored:
        lines += _gpu(stored["gpu"])
    return "\n".join(lines)


def _on(facts: Row) -> str:
    return f"{facts['processor']}, {facts['cores']} cores, load {facts['load']:.1f} before, {facts['date']}."


def _speed(found: list[Row]) -> list[str]:
    loads = [case["machine"]["load"] for case in found]
    facts = found[0]["machine"]
    lines = [
        "## Speed",
        "",
        f"{facts['processor']}, {facts['cores']} cores, load {min(loads):.1f} to {max(loads):.1f} before a case, "
        f"{facts['date']}. Parts by METIS. A sweep is the slope between runs of {speed.FEW} and {speed.MANY} sweeps, "
        f"the median of {found[0]['rounds']} rounds in which all ways take turns and other programs take at most "
        f"{speed.OTHERS:.0%} of the machine. The ratio is that of sweeps a second "
        "of processes to those of one process with as many threads; beside it are the least and the largest of a "
        "round. With more processes than cores, both share them. Without overlap, processes wait for the exchange "
        "before they compute.",
        "",
        "Bytes are those really sent by all processes in a sweep, without 8 bytes of each process that decide on "
        "convergence. The bound sends K numbers of each node once to each other process that owns a neighbour of it. "
        "Beliefs are those of one process; the last column is their largest difference in float64 after "
        f"{speed.CHECKED} sweeps.",
        "",
        "| graph | edges | K | processes | sweeps/s | without overlap | threads: sweeps/s | ratio | of rounds "
        "| bytes a sweep | to the bound | difference |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for case in found for row in case["rows"]):
        ratios = [one / other for one, other in zip(row["rounds_threads"], row["rounds_processes"], strict=True)]
        bound = f"{row['bytes_sweep'] / row['bytes_bound']:.3f}" if row["bytes_bound"] else "-"
        lines.append(
            f"| {row['graph']}{'' if 'others' in row else ' †'} | {row['edges']:,} | {row['states']} | "
            f"{row['count']} | "
            f"{1 / row['seconds_processes']:.1f} | {1 / row['seconds_waiting']:.1f} | "
            f"{1 / row['seconds_threads']:.1f} | "
            f"{row['seconds_threads'] / row['seconds_processes']:.2f} | {min(ratios):.2f} to {max(ratios):.2f} | "
            f"{row['bytes_sweep']:,.0f} | "
            f"{bound} | {row['difference']:.1e} |"
        )
    if not all("others" in row for case in found for row in case["rows"]):
        lines += ["", "† Runs of 2 and 22 sweeps; what other programs took of the machine was not recorded."]
    return [*lines, ""]


def _memory(found: Row) -> list[str]:
    lines = [
        "## Memory and time for the calculator",
        "",
        f"{_on(found['machine'])} Peak growth of processes that hold parts of lattices and propagate on them, with 1 "
        "and 4 edges a node and two sizes each, by least squares of relative errors: two processes, edges and nodes "
        f"as held. Seconds are the median of {memory.SWEEPS} sweeps with 4 edges a node, whose neighbours are near in "
        "memory; both processes run at once.",
        "",
        "| K | bytes an edge | bytes a node | worst error of the fit | ns an edge a sweep |",
        "|---|---|---|---|---|",
    ]
    for row in found["fits"]:
        lines.append(
            f"| {row['states']} | {row['bytes_edge']:.0f} | {row['bytes_node']:.0f} | {row['worst_error']:.1%} | "
            f"{1e9 * row['seconds_edge_sweep']:.2f} |"
        )
    return [*lines, ""]


def _exchange(found: Row) -> list[str]:
    lines = [
        "## Time of an exchange for the calculator",
        "",
        f"{_on(found['machine'])} Two processes over gloo send each other three numbers of every fourth of their "
        f"nodes, packing and unpacking included, the median of {exchange.REPEATS}. By least squares of relative errors "
        f"a message takes {1e6 * found['seconds_message']:.0f} µs and a byte {1e9 * found['seconds_byte']:.2f} ns "
        f"({1e-9 / found['seconds_byte']:.2f} GB/s); the worst error of the fit is {found['worst_error']:.0%}.",
        "",
        "| bytes each way | ms |",
        "|---|---|",
    ]
    return [*lines, *(f"| {row['bytes']:,} | {1e3 * row['seconds']:.3f} |" for row in found["rows"]), ""]


def _huge(found: Row) -> list[str]:
    lines = [
        "## One huge grid",
        "",
        f"{_on(found['machine'])} Every process makes its part by arithmetic; none ever holds the whole graph. Every "
        "edge has its own table. Memory is the sum of the peak resident sets of all processes, which counts libraries "
        f"that they share once for each. A sweep is the median of {memory.SWEEPS}.",
        "",
        "| edges | K | processes | GiB, all | GiB, largest process | GiB before | s making | s set-up | s a sweep "
        "| s results | bytes sent a sweep |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        largest = max(process["peak"] for process in row["processes"])
        lines.append(
            f"| {row['edges']:,} | {row['states']} | {row['ranks']} | {row['total_peak'] / 2**30:.2f} | "
            f"{largest / 2**30:.2f} | {row['base'] / 2**30:.2f} | {row['seconds_making']:.1f} | "
            f"{row['seconds_setup']:.1f} | {row['seconds_sweep']:.3f} | {row['seconds_results']:.1f} | "
            f"{row['bytes_sent']:,} |"
        )
    return [*lines, ""]


def _gpu(found: Row) -> list[str]:
    lines = [
        "## Processes that share a GPU",
        "",
        f"{found['machine']['gpu']}, {found['machine']['date']}. Every part lies on the same GPU; totals go by gloo, "
        "through the memory of the host. Parts are runs of nodes on the grid, and dealt out by hash elsewhere. The "
        f"difference is the largest of a belief from that of one process, in float64 after {speed.CHECKED} sweeps, "
        "over plain, damped and tree-reweighted sum-product and max-product. nccl needs a GPU for each process and was "
        "not run.",
        "",
        "| graph | edges | K | processes | difference |",
        "|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        lines.append(
            f"| {row['graph']} | {row['edges']:,} | {row['states']} | {row['count']} | {row['difference']:.1e} |"
        )
    return [*lines, ""]
