#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what `emunic sim` wrote into a folder, as SVG and PNG beside the data.

    simplot.py FOLDER

    result.json             latency and throughput over load, a curve per routing mode; saturation, a bar per mode
    latency-*.tsv           distribution of latencies
    links-*.tsv             heat map of the links: a torus plane by plane, a Dragonfly by groups, others as a matrix
    vcs-*.tsv               packets and occupancy of virtual channels, by class of links
    others with '# title'   curves of an experiment (emunic sim run --data)

Needs matplotlib. A file that is not understood is named and left out; then the status is 1.
"""

import csv
import json
import math
import pathlib
import sys

SLOT = 0.12         # of a torus panel, between the two directions of a link
PANELS_MAX = 64     # planes of a torus that are drawn link by link
CELLS_MAX = 1600    # routers of a torus that are drawn link by link
TORUS = ("x", "y", "z", "mezzanine", "backplane")


class Bad(Exception):
    """A file that is not what it should be."""


def load():
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "emunic", "svg.fonttype": "path", "font.size": 9})
    from matplotlib import pyplot
    return pyplot


def save(pyplot, figure, path):
    for suffix in ("svg", "png"):
        figure.savefig(path.with_suffix("." + suffix), dpi=120, metadata={"Date": None} if suffix == "svg" else None)
    pyplot.close(figure)


def read_table(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if not rows:
        raise Bad("no rows")
    return rows


def title_of(path):
    """What stands behind the kind of file: mode and load."""
    return path.stem.split("-", 1)[1]


# ---- Curves --------------------------------------------------------------------------------------------------------


def draw_load_curves(pyplot, path):
    result = json.loads(path.read_text())
    by_mode = {}
    for run in result["runs"]:
        if run["load"] > 0:
            by_mode.setdefault(run["mode"], []).append(run)
    if not by_mode:
        return
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    # Below a microsecond nanoseconds are easier to read.
    is_short = all(run["latency"]["mean_ns"] < 1000 for runs in by_mode.values() for run in runs)
    scale = 1 if is_short else 1000
    for mode, runs in by_mode.items():
        runs = sorted(runs, key=lambda run: run["load"])
        loads = [run["load"] for run in runs]
        line, = left.plot(loads, [run["latency"]["mean_ns"] / scale for run in runs], marker="o", markersize=3,
                          label=mode)
        left.plot(loads, [run["latency"]["p99_ns"] / scale for run in runs], "--", linewidth=0.8,
                  color=line.get_color())
        right.plot([run["offered_gb_per_s"] for run in runs], [run["accepted_gb_per_s"] for run in runs], marker="o",
                   markersize=3, label=mode)
    most = max(run["offered_gb_per_s"] for runs in by_mode.values() for run in runs)
    if not result["response_units"]:
        right.plot([0, most], [0, most], ":", color="grey", linewidth=1, label="all that is offered")
    left.set_xlabel("offered load, share of the capacity for uniform traffic")
    left.set_ylabel(f"latency in {'ns' if is_short else 'us'}: mean, dashed 99 %")
    left.set_yscale("log")
    left.legend(fontsize=8)
    right.set_xlabel("offered, GB/s per node")
    right.set_ylabel("accepted, GB/s per node" + (", responses included" if result["response_units"] else ""))
    right.set_xlim(left=0)
    right.set_ylim(bottom=0)
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.suptitle(f"{result['machine']}, {result['nodes']} nodes: {result['pattern']}, "
                    f"packets of {result['units']} units, seed {result['seed']}")
    save(pyplot, figure, path.with_name("load"))


def draw_saturation(pyplot, path):
    result = json.loads(path.read_text())
    rows = result.get("saturation")
    if not rows:
        return
    modes = [row["mode"] for row in rows]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(4 + 1.2 * len(rows), 4), layout="constrained")
    for axes, key in ((left, "load"), (right, "accepted_gb_per_s")):
        means = [row[key]["mean"] for row in rows]
        bars = axes.bar(modes, means, yerr=[row[key]["half_95"] for row in rows], capsize=4, color="tab:blue")
        axes.bar_label(bars, [f"{mean:.3g}" for mean in means], label_type="center", color="white")
        axes.tick_params(axis="x", rotation=30)
        axes.grid(alpha=0.3, axis="y")
    left.set_ylabel("saturation (load)")
    right.set_ylabel("accepted there, GB/s per node")
    seeds = rows[0]["load"]["n"]
    figure.suptitle(f"{result['machine']}: {result['pattern']}" +
                    (f", {seeds} seeds, 95 % confidence" if seeds > 1 else ""))
    save(pyplot, figure, path.with_name("saturation"))


def draw_latency(pyplot, path):
    rows = read_table(path)
    lows = [float(row["low_ns"]) for row in rows]
    highs = [float(row["high_ns"]) for row in rows]
    counts = [int(row["packets"]) for row in rows]
    total = sum(counts)
    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    density = [count / total / (high - low) for low, high, count in zip(lows, highs, counts)]
    axes.bar(lows, density, [high - low for low, high in zip(lows, highs)], align="edge", color="tab:blue", alpha=0.6)
    axes.set_xlabel("latency in ns, created to delivered")
    axes.set_ylabel("share of the packets per ns")
    shares = axes.twinx()
    running = 0
    xs, ys = [lows[0]], [0.0]
    for high, count in zip(highs, counts):
        running += count
        xs.append(high)
        ys.append(running / total)
    shares.plot(xs, ys, color="black", linewidth=1)
    shares.set_ylim(0, 1.02)
    shares.set_ylabel("share of the packets up to here (line)")
    if highs[-1] > 30 * max(lows[0], 1):
        axes.set_xscale("log")
    axes.set_title(f"{title_of(path)}: {total} packets")
    axes.grid(alpha=0.3)
    save(pyplot, figure, path)


def draw_vcs(pyplot, path):
    rows = read_table(path)
    sums = {}
    for row in rows:
        entry = sums.setdefault((row["class"], int(row["vc"])), [0, 0, 0.0])
        entry[0] += 1
        entry[1] += int(row["packets"])
        entry[2] += float(row["occupancy_units"])
    names = [f"{name} vc {vc}" for name, vc in sums]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 1.4 + 0.3 * len(names)), sharey=True,
                                            layout="constrained")
    left.barh(names, [entry[1] for entry in sums.values()], color="tab:blue")
    left.set_xlabel("packets")
    left.invert_yaxis()
    right.barh(names, [entry[2] / entry[0] for entry in sums.values()], color="tab:orange")
    right.set_xlabel("units in its buffer, mean over time and used links")
    for axes in (left, right):
        axes.grid(alpha=0.3, axis="x")
    figure.suptitle(title_of(path))
    save(pyplot, figure, path)


def draw_curves(pyplot, path):
    labels, curves = {}, {}
    with open(path) as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if line.startswith("# ") and len(fields) == 2:
                labels[fields[0][2:]] = fields[1]
            elif len(fields) == 3:
                curves.setdefault(fields[0], []).append((float(fields[1]), float(fields[2])))
            elif line.strip():
                raise Bad(f"'{line.strip()[:40]}' is not series, x and y")
    if "title" not in labels or not curves:
        raise Bad("no title or no points")
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for name, points in curves.items():
        xs, ys = zip(*points)
        axes.plot(xs, ys, marker="o" if len(xs) < 60 else None, markersize=3, linewidth=1.2, label=name)
    positive = [x for points in curves.values() for x, _ in points]
    if min(positive) > 0 and max(positive) / min(positive) > 200:
        axes.set_xscale("log", base=2)
    axes.set_xlabel(labels.get("x", ""))
    axes.set_ylabel(labels.get("y", ""))
    axes.set_title(labels["title"])
    axes.grid(alpha=0.3)
    if len(curves) > 1 or "" not in curves:
        axes.legend(fontsize=8)
    save(pyplot, figure, path)


# ---- Heat maps -----------------------------------------------------------------------------------------------------


class Link:
    """One direction of a link between routers."""

    def __init__(self, row):
        self.kind = row["class"]
        self.start = tuple(int(row["from_" + axis]) for axis in "xyz")
        self.end = tuple(int(row["to_" + axis]) for axis in "xyz")
        self.routers = int(row["from"]), int(row["to"])
        self.load = float(row["utilisation"])


def mean_by(links, key):
    sums = {}
    for link in links:
        entry = sums.setdefault(key(link), [0.0, 0])
        entry[0] += link.load
        entry[1] += 1
    return {where: total / count for where, (total, count) in sums.items()}


def colours(pyplot, links):
    """One scale for the whole picture: from 0 to the busiest link, to 1 if that is nearly full."""
    top = max((link.load for link in links), default=0) or 1
    norm = pyplot.Normalize(0, 1 if top > 0.8 else top)
    return pyplot.cm.ScalarMappable(norm, pyplot.get_cmap("turbo"))


def add_scale(figure, axes, scale):
    figure.colorbar(scale, ax=axes, label="share of the time that a link is busy", shrink=0.8, pad=0.01)


def summary(links):
    text = []
    for kind in dict.fromkeys(link.kind for link in links):
        loads = [link.load for link in links if link.kind == kind]
        text.append(f"{kind}: mean {sum(loads) / len(loads):.2f}, busiest {max(loads):.2f}")
    return "; ".join(text)


def sizes_of(links):
    return [max(max(link.start[d], link.end[d]) for link in links) + 1 for d in range(3)]


def step_of(link, sizes):
    """Dimension and sign of a torus link; the wrap goes one step on."""
    for d in range(3):
        if link.start[d] != link.end[d]:
            step = (link.end[d] - link.start[d]) % sizes[d]
            if sizes[d] == 2:
                return d, 1 if link.start[d] == 0 else -1
            return d, 1 if step == 1 else -1
    return None


def torus_segments(links, sizes):
    """Each link in its plane: ((x0, y0), (x1, y1)), a bit beside the line between the routers, as traffic on a road."""
    planes = {}
    crossing = {}
    for link in links:
        step = step_of(link, sizes)
        if step is None:
            continue
        d, sign = step
        x, y, z = link.start
        if d == 2:
            crossing.setdefault((x, y, z), {}).setdefault(sign, []).append(link.load)
            continue
        dx, dy = (sign, 0) if d == 0 else (0, sign)
        ox, oy = (0, -SLOT * sign) if d == 0 else (SLOT * sign, 0)
        is_wrap = link.end[d] != link.start[d] + sign
        reach = 0.45 if is_wrap else 1
        start, end = (x + ox, y + oy), (x + ox + dx * reach, y + oy + dy * reach)
        planes.setdefault(z, {}).setdefault((start, end), []).append(link.load)
    return planes, crossing


def draw_torus_planes(pyplot, links, sizes, path):
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Wedge
    planes, crossing = torus_segments(links, sizes)
    columns = min(sizes[2], max(1, round(math.sqrt(sizes[2] * 1.6 * sizes[1] / sizes[0]))))
    rows = math.ceil(sizes[2] / columns)
    cell = min(0.5, 15 / (columns * (sizes[0] + 1)))
    figure, grid = pyplot.subplots(rows, columns, squeeze=False, layout="constrained",
                                   figsize=(max(9, columns * (sizes[0] + 1) * cell + 1.2),
                                            rows * (sizes[1] + 1.2) * cell + 1))
    scale = colours(pyplot, links)
    width = 72 * cell * SLOT * 1.3
    for z, axes in enumerate(grid.flat):
        axes.set_aspect("equal")
        axes.set_axis_off()
        if z >= sizes[2]:
            continue
        segments = planes.get(z, {})
        if segments:
            axes.add_collection(LineCollection(list(segments), linewidths=width, capstyle="butt",
                                               colors=scale.to_rgba([sum(v) / len(v) for v in segments.values()])))
        wedges, values = [], []
        for (x, y, at_z), by_sign in crossing.items():
            for sign, loads in by_sign.items():
                if at_z == z:
                    wedges.append(Wedge((x, y), 0.3, 90 if sign < 0 else 270, 270 if sign < 0 else 90))
                    values.append(sum(loads) / len(loads))
        if wedges:
            axes.add_collection(PatchCollection(wedges, facecolors=scale.to_rgba(values), edgecolors="white",
                                                linewidths=0.4, zorder=3))
        axes.set_xlim(-0.7, sizes[0] - 0.3)
        axes.set_ylim(-0.7, sizes[1] - 0.3)
        axes.set_title(f"z = {z}", fontsize=8, pad=2)
        for x in range(sizes[0]):
            axes.text(x, -0.72, str(x), ha="center", va="top", fontsize=5, color="0.4")
        for y in range(sizes[1]):
            axes.text(-0.75, y, str(y), ha="right", va="center", fontsize=5, color="0.4")
    add_scale(figure, grid, scale)
    figure.suptitle(f"{title_of(path)}\n{summary(links)}\nx to the right, y up; a link drives on its right side, "
                    "stubs at the edge are wraps; half discs: to z - 1 (left) and z + 1 (right)", fontsize=8)
    save(pyplot, figure, path)


def draw_torus_tiles(pyplot, links, sizes, path):
    """A large torus: one picture per direction, a tile per plane z, a pixel per router."""
    import numpy
    columns = max(1, round(math.sqrt(sizes[2] * 1.6 * sizes[1] / sizes[0])))
    rows = math.ceil(sizes[2] / columns)
    scale = colours(pyplot, links)
    figure, grid = pyplot.subplots(3, 2, figsize=(15, 12), layout="constrained")
    means = mean_by([link for link in links if step_of(link, sizes)], lambda link: (step_of(link, sizes), link.start))
    for d in range(3):
        for sign in (-1, 1):
            axes = grid[d][int(sign > 0)]
            image = numpy.full((rows * (sizes[1] + 1), columns * (sizes[0] + 1)), numpy.nan)
            for (step, (x, y, z)), load in means.items():
                if step == (d, sign):
                    image[z // columns * (sizes[1] + 1) + y, z % columns * (sizes[0] + 1) + x] = load
            axes.imshow(image, norm=scale.norm, cmap=scale.cmap, origin="upper", interpolation="nearest")
            axes.set_title(f"{'xyz'[d]}{'+' if sign > 0 else '-'}", fontsize=9, pad=2)
            axes.set_xticks([])
            axes.set_yticks([])
            for z in range(sizes[2]):
                axes.text(z % columns * (sizes[0] + 1) - 0.5, z // columns * (sizes[1] + 1) - 0.6, f"z {z}", fontsize=4,
                          color="0.4")
    add_scale(figure, grid, scale)
    figure.suptitle(f"{title_of(path)}\n{summary(links)}\na tile per plane z: x to the right, y down", fontsize=8)
    save(pyplot, figure, path)


def draw_torus(pyplot, links, path):
    sizes = sizes_of(links)
    is_small = sizes[2] <= PANELS_MAX and sizes[0] * sizes[1] * sizes[2] <= CELLS_MAX
    (draw_torus_planes if is_small else draw_torus_tiles)(pyplot, links, sizes, path)


def matrix(pyplot, axes, scale, means, rows, columns, gap=None):
    """Cells by (row, column); `gap` tells after how many cells a line parts them."""
    import numpy
    image = numpy.full((rows, columns), numpy.nan)
    for (row, column), load in means.items():
        image[row, column] = load
    axes.imshow(image, norm=scale.norm, cmap=scale.cmap, origin="upper", interpolation="nearest", aspect="auto")
    axes.set_facecolor("0.93")
    if gap:
        axes.set_xticks([k * gap[1] - 0.5 for k in range(columns // gap[1] + 1)], [])
        axes.set_yticks([k * gap[0] - 0.5 for k in range(rows // gap[0] + 1)], [])
        axes.grid(color="white", linewidth=1.5)
        axes.tick_params(length=0)


def draw_dragonfly(pyplot, links, path):
    groups, chassis, blades = sizes_of(links)
    scale = colours(pyplot, links)
    figure = pyplot.figure(figsize=(15, 10), layout="constrained")
    layout = figure.add_gridspec(2, 2, width_ratios=[1, 1.6])
    blue = figure.add_subplot(layout[:, 0])
    green = figure.add_subplot(layout[0, 1])
    black = figure.add_subplot(layout[1, 1])

    means = mean_by([l for l in links if l.kind == "blue"], lambda l: (l.start[0], l.end[0]))
    matrix(pyplot, blue, scale, means, groups, groups)
    blue.set_aspect("equal")
    blue.set_title("blue, between groups: mean of each bundle", fontsize=9)
    blue.set_xlabel("to group")
    blue.set_ylabel("from group")
    if groups <= 16:
        for (row, column), load in means.items():
            red, green_part, blue_part, _ = scale.to_rgba(load)
            ink = "black" if 0.3 * red + 0.6 * green_part + 0.1 * blue_part > 0.45 else "white"
            blue.text(column, row, f"{load:.2f}", ha="center", va="center", fontsize=7, color=ink)

    means = mean_by([l for l in links if l.kind == "green"],
                    lambda l: (l.start[1] * blades + l.start[2], l.start[0] * blades + l.end[2]))
    matrix(pyplot, green, scale, means, chassis * blades, groups * blades, (blades, blades))
    green.set_title(f"green, within a chassis: from slot (down) to slot (right), {blades} each", fontsize=9)
    label_tiles(green, groups, chassis, blades, blades, "group", "chassis")

    means = mean_by([l for l in links if l.kind == "black"],
                    lambda l: (l.start[2] * chassis + l.start[1], l.start[0] * chassis + l.end[1]))
    matrix(pyplot, black, scale, means, blades * chassis, groups * chassis, (chassis, chassis))
    black.set_title(f"black, between chassis: from chassis (down) to chassis (right), {chassis} each, mean of 3 links",
                    fontsize=9)
    label_tiles(black, groups, blades, chassis, chassis, "group", "slot")
    add_scale(figure, [blue, green, black], scale)
    figure.suptitle(f"{title_of(path)}\n{summary(links)}", fontsize=9)
    save(pyplot, figure, path)


def label_tiles(axes, columns, rows, width, height, column_name, row_name):
    every = max(1, columns // 24)
    for k in range(0, columns, every):
        axes.text((k + 0.5) * width - 0.5, rows * height - 0.2, str(k), ha="center", va="top", fontsize=7)
    for k in range(rows):
        axes.text(-0.7, (k + 0.5) * height - 0.5, str(k), ha="right", va="center", fontsize=7)
    axes.set_xlabel(column_name, labelpad=14)
    axes.set_ylabel(row_name, labelpad=16)


def draw_matrix(pyplot, links, path):
    """Any other topology: routers against routers, or the sorted loads of each class if there are too many."""
    n = max(max(link.routers) for link in links) + 1
    scale = colours(pyplot, links)
    if n > 400:
        draw_sorted(pyplot, links, path)
        return
    figure, axes = pyplot.subplots(figsize=(8, 7), layout="constrained")
    matrix(pyplot, axes, scale, mean_by(links, lambda link: link.routers), n, n)
    axes.set_aspect("equal")
    axes.set_xlabel("to router")
    axes.set_ylabel("from router")
    add_scale(figure, axes, scale)
    axes.set_title(f"{title_of(path)}\n{summary(links)}", fontsize=8)
    save(pyplot, figure, path)


def draw_sorted(pyplot, links, path):
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for kind in dict.fromkeys(link.kind for link in links):
        loads = sorted((link.load for link in links if link.kind == kind), reverse=True)
        axes.plot([100 * k / len(loads) for k in range(len(loads))], loads, label=f"{kind} ({len(loads)})")
    axes.set_xlabel("links of the class in %, busiest first")
    axes.set_ylabel("share of the time that a link is busy")
    axes.set_title(title_of(path))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    save(pyplot, figure, path)


def draw_links(pyplot, path):
    links = [Link(row) for row in read_table(path) if not row["class"].startswith("processor")]
    if not links:
        raise Bad("no links between routers")
    kinds = {link.kind for link in links}
    draw_sorted(pyplot, links, path.with_name(path.stem + "-sorted.tsv"))
    if kinds & {"green", "black", "blue"}:
        draw_dragonfly(pyplot, links, path)
    elif kinds <= set(TORUS):
        draw_torus(pyplot, links, path)
    else:
        draw_matrix(pyplot, links, path)


# ---- All of a folder -----------------------------------------------------------------------------------------------


def draw(pyplot, path):
    if path.name == "result.json":
        draw_load_curves(pyplot, path)
        draw_saturation(pyplot, path)
    elif path.name.startswith("latency-"):
        draw_latency(pyplot, path)
    elif path.name.startswith("links-"):
        draw_links(pyplot, path)
    elif path.name.startswith("vcs-"):
        draw_vcs(pyplot, path)
    else:
        draw_curves(pyplot, path)


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) == 2 else 2
    folder = pathlib.Path(sys.argv[1])
    try:
        pyplot = load()
    except ImportError:
        print("simplot: no plots: python3-matplotlib is not installed", file=sys.stderr)
        return 0
    status = 0
    for path in sorted(folder.glob("*.tsv")) + sorted(folder.glob("result.json")):
        try:
            draw(pyplot, path)
        except (Bad, KeyError, ValueError, OSError) as problem:
            print(f"simplot: {path}: {problem!r}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
