# SPDX-License-Identifier: BSD-3-Clause
"""A plot for each metric, SVG and PNG: bars of medians with their range, or curves over the size. Needs matplotlib."""

import statistics

import process

# The limits that belong into a plot beside those who do the work.
LIMITS = {
    "put8_half_round_trip": [("hand_over", None), ("yield_relay", None), ("process_vm_writev", 8)],
    "message8_half_round_trip": [("hand_over", None)],
    "smsg_ring_hop": [("yield_switch", None), ("yield_ring32", None)],
    "smsg_ring_full_hop": [("yield_switch", None)],
    "put_bandwidth": [("memcpy", ...), ("process_vm_writev", ...)],
    "get_bandwidth": [("memcpy", ...), ("process_vm_writev", ...)],
}


def load():
    try:
        import matplotlib
    except ImportError:
        raise process.Missing("python3-matplotlib is not installed") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "emunic", "font.size": 9})
    from matplotlib import pyplot
    return pyplot


def lines_of(results, metric):
    """{who: {size: samples}} of a metric and its limits."""
    found = {}
    for (name, size, who), values in results.samples.items():
        if name == metric and who != "limit":
            found.setdefault(who, {})[size] = values
        elif who == "limit" and (name, size) in LIMITS.get(metric, []):
            found.setdefault(f"limit: {name}", {})[None] = values
        elif who == "limit" and (name, ...) in LIMITS.get(metric, []) and size >= 4096:
            found.setdefault(f"limit: {name}", {})[size] = values
    return found


def draw_bars(axes, lines, unit):
    names = list(lines)[::-1]
    samples = [lines[name][None] for name in names]
    medians = [statistics.median(values) for values in samples]
    spread = [[m - min(v) for m, v in zip(medians, samples)], [max(v) - m for m, v in zip(medians, samples)]]
    colours = ["tab:blue" if name.startswith("emunic") else "tab:grey" for name in names]
    axes.barh(names, medians, xerr=spread, color=colours, ecolor="black", capsize=2)
    for row, median in enumerate(medians):
        axes.text(median, row + 0.3, f" {median:.3g}", va="center")
    if min(map(min, samples)) > 0:
        axes.set_xscale("log")
    axes.set_xlabel(f"{unit}, median, min and max")


def draw_curves(axes, lines, unit):
    for who, by_size in lines.items():
        sizes = sorted(by_size)
        style = "--" if who.startswith("limit") else "-" if who.startswith("emunic") else ":"
        axes.plot(sizes, [statistics.median(by_size[size]) for size in sizes], style, marker="o", markersize=3,
                  label=who)
        axes.fill_between(sizes, [min(by_size[size]) for size in sizes], [max(by_size[size]) for size in sizes],
                          alpha=0.1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("nodes" if set(lines) == {"emunic sim"} else "bytes")
    axes.set_ylabel(f"{unit}, median, min and max")
    axes.legend(fontsize=7)


def draw_all(results, folder):
    pyplot = load()
    for metric in dict.fromkeys(name for name, _, who in results.samples if who != "limit"):
        lines = lines_of(results, metric)
        unit = next(unit for (name, _), unit in results.units.items() if name == metric)
        is_sized = any(size is not None for by_size in lines.values() for size in by_size)
        figure, axes = pyplot.subplots(figsize=(8, 4.5 if is_sized else 1.6 + 0.4 * len(lines)), layout="constrained")
        (draw_curves if is_sized else draw_bars)(axes, lines, unit)
        axes.set_title(metric)
        axes.grid(alpha=0.3)
        for suffix in ("svg", "png"):
            figure.savefig(folder / f"{metric}.{suffix}", dpi=120)
        pyplot.close(figure)
