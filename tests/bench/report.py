# SPDX-License-Identifier: BSD-3-Clause
"""Samples of figures; what is to be shown of them; the table and the JSON object."""

import statistics

import sim_sizes


class Results:
    """Samples by (metric, size in bytes or None, who), in the order of their first appearance."""

    def __init__(self):
        self.samples = {}
        self.by_turn = {}       # key: {repetition: sample}
        self.units = {}
        self.missing = {}       # what was not measured: why

    def add(self, who, figures, repetition):
        for metric, size, value, unit in figures:
            key = (metric, size, who)
            self.samples.setdefault(key, []).append(value)
            self.by_turn.setdefault(key, {})[repetition] = value
            self.units[metric, size] = unit

    def turns(self, keys):
        """Repetitions in which all of these were measured."""
        return sorted(set.intersection(*(set(self.by_turn[key]) for key in keys)))

    def median(self, key):
        return statistics.median(self.samples[key])

    def best(self, key):
        """The sample that the rest of the machine disturbed least."""
        is_more_better = self.units[key[:2]] in ("GB/s", "M/s")
        return (max if is_more_better else min)(self.samples[key])

    def as_list(self):
        return [{"name": metric, "who": who, "size_bytes": size, "unit": self.units[metric, size], "samples": values,
                 "min": min(values), "median": statistics.median(values), "max": max(values)}
                for (metric, size, who), values in self.samples.items()]


def size_text(size):
    if size is None or size < 1024:
        return "" if size is None else f"{size} B"
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


# ---- targets ----

DIRECT, CMA, ROUTED = "emunic direct adopted", "emunic direct cma", "emunic routed adopted"
PORTALS = "emunic portals"
HOSTS = "two hosts"
SECURE = "two hosts, secure"
MPI_UGNI, MPI_VADER = "mpi over ugni", "mpi over vader"


def limit(metric, size=None):
    return (metric, size, "limit")


def posix(metric):
    return (metric, None, "ucx posix")


PUT8 = ("put8_half_round_trip", None)

# text, our figure, what it is divided by (a sum of figures; empty: 1) and a factor of that, relation, bound; factor None:
# the difference in nanoseconds of figures in microseconds; bound None: no aim, but what an aim below it is judged by
TARGETS = [
    ("8-byte put and event / hand-over", (*PUT8, DIRECT), [limit("hand_over")], 1, "<=", 1.3),
    ("8-byte put and event / UCX put_lat", (*PUT8, DIRECT), [posix(PUT8[0])], 1, "<=", 1.3),
    ("the same, cma / (process_vm_writev + hand-over)", (*PUT8, CMA),
     [limit("process_vm_writev", 8), limit("hand_over")], 1, "<=", 1.25),
    # What is written lies in the cache of a process that polls; in the sum the other one sleeps.
    ("process_vm_writev and hand-over in turn / (process_vm_writev + hand-over)", limit("cma_hand_over"),
     [limit("process_vm_writev", 8), limit("hand_over")], 1, "", None),
    ("8-byte put rate, M/s", ("put8_rate", None, DIRECT), [], 1, ">=", 10),
    ("8-byte put rate / UCX put_bw", ("put8_rate", None, DIRECT), [posix("put8_rate")], 1, ">=", 0.5),
    ("8-byte get / UCX get", ("get8_latency", None, DIRECT), [posix("get8_latency")], 1, "<=", 3),
    ("fetch-add / UCX fadd", ("fadd8_latency", None, DIRECT), [posix("fadd8_latency")], 1, "<=", 1.2),
    ("SMSG 8 bytes, mailbox polled / UCX am_lat", ("message8_mailbox_half_round_trip", None, DIRECT),
     [posix("message8_half_round_trip")], 1, "<=", 1),
    ("SMSG 8 bytes, event consumed / UCX am_lat", ("message8_half_round_trip", None, DIRECT),
     [posix("message8_half_round_trip")], 1, "<=", 1.2),
    *((f"BTE put {size_text(size)} / memcpy", ("put_bandwidth", size, DIRECT), [limit("memcpy", size)], 1, ">=", 0.95)
      for size in (65536, 262144, 1048576, 4194304)),
    *((f"BTE put {size_text(size)} / UCX posix", ("put_bandwidth", size, DIRECT), [("put_bandwidth", size, "ucx posix")],
       1, ">=", 1) for size in (65536, 262144, 1048576, 4194304, 16777216)),
    ("BTE put 16 MiB / memcpy", ("put_bandwidth", 16777216, DIRECT), [limit("memcpy", 16777216)], 1, ">=", 0.95),
    *((f"BTE {operation} {size_text(size)}, cma / UCX cma", (f"{operation}_bandwidth", size, CMA),
       [(f"{operation}_bandwidth", size, "ucx cma")], 1, ">=", 1)
      for operation in ("put", "get") for size in (4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)),
    ("register 64 KiB first, above the touch of its pages, ns", ("register_first64", None, DIRECT),
     [("touch64", None, DIRECT)], None, "<=", 20000),
    ("register 64 KiB again, us", ("register_again64", None, DIRECT), [], 1, "<=", 2),
    ("the same, median of 200 first ones, above the median of touches, ns", ("register_first64_median", None, DIRECT),
     [("touch64_median", None, DIRECT)], None, "<=", 20000),
    ("the same, median of 200 times 20 again, us", ("register_again64_median", None, DIRECT), [], 1, "<=", 2),
    *((f"MPI over {layer}, {text} / vader", (metric, size, f"emunic mpi {layer}"), [(metric, size, "open mpi")], 1,
       relation, bound)
      for layer in ("gni", "portals")
      for text, metric, size, relation, bound in (
          ("8 bytes", "message8_half_round_trip", None, "<=", 1.5),
          ("message rate", "message8_rate", None, ">=", 0.7),
          ("1 MiB", "message_bandwidth", 1048576, ">=", 1),
          *((f"{what} of {n}", f"mpi_{name}{n}_time", None, "<=", 1)
            for what, name in (("barrier", "barrier"), ("8-byte sum", "sum")) for n in (2, 4, 16)),
          ("put and flush", "mpi_put8_flush_time", None, "<=", 1))),
    ("MPI 8 bytes, btl/ugni / btl/vader", ("message8_half_round_trip", None, MPI_UGNI),
     [("message8_half_round_trip", None, MPI_VADER)], 1, "<=", 1.3),
    ("MPI 1 MiB, btl/ugni / btl/vader", ("message_bandwidth", 1048576, MPI_UGNI),
     [("message_bandwidth", 1048576, MPI_VADER)], 1, ">=", 0.8),
    *((f"DMAPP {text} / OpenSHMEM", (metric, size, "emunic dmapp"), [(metric, size, "open shmem")], 1, relation, bound)
      for text, metric, size, relation, bound in (
          ("8-byte put and flag", "pgas_put8_flag_half_round_trip", None, "<=", 1.1),
          ("blocking 8-byte get", "pgas_get8_latency", None, "<=", 2),
          ("fetch-add", "pgas_fadd8_latency", None, "<=", 2),
          ("stream of puts with gsync", "pgas_put8_stream_time", None, "<=", 3),
          ("barrier of 4", "pgas_barrier4_time", None, "<=", 1),
          ("barrier of 16", "pgas_barrier16_time", None, "<=", 1),
          ("8-byte sum of 4", "pgas_sum4_time", None, "<=", 1),
          ("8-byte sum of 16", "pgas_sum16_time", None, "<=", 1),
          ("1 MiB put", "pgas_put_bandwidth", 1048576, ">=", 0.95))),
    # No store reaches another core sooner.
    ("hand-over / put and flag of OpenSHMEM", limit("hand_over"),
     [("pgas_put8_flag_half_round_trip", None, "open shmem")], 1, "", None),
    *((f"SHMEM {text} / OpenSHMEM", (metric, size, "emunic shmem"), [(metric_of_other or metric, size, "open shmem")], 1,
       relation, bound)
      for text, metric, metric_of_other, size, relation, bound in (
          ("8-byte put and flag", "pgas_put8_flag_half_round_trip", None, None, "<=", 0.8),
          ("put-with-signal / put and flag of", "pgas_put8_signal_half_round_trip", "pgas_put8_flag_half_round_trip",
           None, "<=", 0.9),
          ("blocking 8-byte get", "pgas_get8_latency", None, None, "<=", 1),
          ("fetch-add", "pgas_fadd8_latency", None, None, "<=", 1),
          ("stream of puts with quiet", "pgas_put8_stream_time", None, None, "<=", 1.1),
          *((f"{what} of {n}", f"pgas_{name}{n}_time", None, None, "<=", 0.7)
            for what, name in (("barrier", "barrier"), ("8-byte sum", "sum")) for n in (2, 4, 16)),
          ("1 MiB put", "pgas_put_bandwidth", None, 1048576, ">=", 1),
          ("64 KiB put, 16 bytes ahead in its page", "pgas_put_ahead_bandwidth", None, 65536, ">=", 1),
          ("random access", "pgas_gups_rate", None, None, ">=", 1.1),
          # The program's own work is 95 % of the first: with an exchange that takes no time the ratio would be 1.06. So
          # the second is the library's part of the same rounds, by the same bound.
          ("integer sort by buckets", "pgas_sort_rate", None, None, ">=", 1.1),
          ("integer sort, the exchange alone", "pgas_sort_exchange_rate", None, None, ">=", 1.1),
          # As sorts like ISx are written: malloc and free in each round. emunic run gives malloc huge pages, oshrun does
          # not; the first touch of the counts is most of the time.
          ("integer sort, memory anew in each round", "pgas_sort_anew_rate", None, None, ">=", 1.1))),
    ("SHMEM 8-byte put above DMAPP, ns", ("pgas_put8_stream_time", None, "emunic shmem"),
     [("pgas_put8_stream_time", None, "emunic dmapp")], None, "<=", 3),
    ("SHMEM stream of puts / DMAPP", ("pgas_put8_stream_time", None, "emunic shmem"),
     [("pgas_put8_stream_time", None, "emunic dmapp")], 1, "<=", 1.1),
    ("DMAPP random access, M updates/s per PE of 4", ("gups_per_pe", None, "emunic dmapp"), [], 1, ">=", 5),
    *((f"Portals {size}-byte put / UCX tag_lat", (f"portals_put{size}_half_round_trip", None, PORTALS),
       [posix(f"tag{size}_half_round_trip")], 1, "<=", 1.3) for size in (0, 8)),
    *((f"Portals, last of {n} entries / walk of a list", (f"portals_match{n}_time", None, PORTALS),
       [(f"list_walk{n}_time", None, PORTALS)], 1, "<=", 1.2) for n in (1000, 10000, 100000)),
    ("Portals, put to the last of 100000 entries / of 1000", ("portals_last100000_put", None, PORTALS),
     [("portals_last1000_put", None, PORTALS)], 1, "<=", 1.2),
    ("Portals 1 MiB put / memcpy", ("put_bandwidth", 1048576, PORTALS), [limit("memcpy", 1048576)], 1, ">=", 0.9),
    *((f"virtual time, {pattern} of {n} ranks / SimGrid", (f"simulated_{name}{n}_rate", None, "emunic virtual time"),
       [(f"simulated_{name}{n}_rate", None, "simgrid")], 1, ">=", 5)
      for n in (2, 16, 64) for pattern, name in (("ping-pong", "pingpong"), ("all-to-all", "alltoall"))),
    ("virtual time, processor time of a packet-hop / sim traffic", ("simulated_hop_time", None, "emunic virtual time"),
     [("simulated_hop_time", None, "emunic sim")], 1, "<=", 1.5),
    ("packet simulator, a hop of 92544 nodes / of 512", ("machine_hop_time", 92544, "emunic sim"),
     [("machine_hop_time", 512, "emunic sim")], 1, "<=", 3),
    ("virtual time, memory of an idle node, KiB", ("idle_node_memory", None, "emunic virtual time"), [], 1, "<=", 4),
    ("two hosts, 8-byte put / libfabric's message", ("hosts_put8_half_round_trip", None, HOSTS),
     [("bare_message8_half_round_trip", None, HOSTS)], 1, "<=", 1.8),
    *((f"two hosts, 4 MiB {operation} / libfabric's", (f"hosts_{operation}_bandwidth", 4194304, HOSTS),
       [(f"bare_{operation}_bandwidth", 4194304, HOSTS)], 1, ">=", 1) for operation in ("put", "get")),
    ("two hosts, 8-byte put, --secure / without", ("hosts_put8_half_round_trip", None, SECURE),
     [("hosts_put8_half_round_trip", None, HOSTS)], 1, "<=", 1.2),
    *((f"two hosts, 4 MiB {operation}, --secure / without", (f"hosts_{operation}_bandwidth", 4194304, SECURE),
       [(f"hosts_{operation}_bandwidth", 4194304, HOSTS)], 1, ">=", 0.15) for operation in ("put", "get")),
    ("routed 8-byte put / yield relay", (*PUT8, ROUTED), [limit("yield_relay")], 1, "<=", 1.2),
    ("a word around 32 processes that yield, hop / two switches", limit("yield_ring32"), [limit("yield_switch")], 2, "",
     None),
    ("ring of 32, hop / two switches", ("smsg_ring_hop", None, DIRECT), [limit("yield_switch")], 2, "<=", 2),
    ("idle emunic, 8 ports, % of a CPU", ("idle_cpu", None, DIRECT), [], 1, "<=", 1),
    ("idle emunic, memory of a port, KiB", ("port_memory", None, DIRECT), [], 1, "<=", 64),
    *((f"start of {n} ranks / mpirun", (f"start{n}_time", None, DIRECT), [(f"start{n}_time", None, "mpirun")], 1, "<=",
       bound) for n, bound in ((4, 1.15), (256, 1.5))),
]


def ratio(value_of, ours, others, factor):
    if factor is None:
        return 1000 * (value_of(ours) - sum(map(value_of, others)))
    return value_of(ours) / (factor * sum(map(value_of, others)) if others else 1)


def quartiles(values):
    if len(values) == 1:
        return values[0], values[0]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, upper


def targets(results):
    """[{target, relation, bound, ratio, quartiles, ratio_of_best, holds, median_holds}]; ratio is None where a figure
    is missing.

    Ours and the alternative run next to each other in each repetition, which gives a ratio of its own. A bound holds if
    it does for three repetitions of four: for the worse quartile of these ratios.
    """
    found = []
    for text, ours, others, factor, relation, bound in TARGETS:
        row = {"target": text, "relation": relation, "bound": bound, "ratio": None, "quartiles": None,
               "ratio_of_best": None, "holds": None, "median_holds": None}
        keys = (ours, *others)
        if all(key in results.samples for key in keys) and results.turns(keys):
            of_turns = [ratio(lambda key, t=turn: results.by_turn[key][t], ours, others, factor)
                        for turn in results.turns(keys)]
            lower, upper = quartiles(of_turns)
            row["ratio"] = ratio(results.median, ours, others, factor)
            row["quartiles"] = [lower, upper]
            row["ratio_of_best"] = ratio(results.best, ours, others, factor)
            if bound is not None:
                row["holds"] = upper <= bound if relation == "<=" else lower >= bound
                row["median_holds"] = row["ratio"] <= bound if relation == "<=" else row["ratio"] >= bound
        found.append(row)
    return found


# ---- output ----

def figure_rows(results):
    yield (f"{'figure':34} {'size':>7} {'who':24} {'unit':>6} {'min':>10} {'median':>10} {'max':>10} "
           f"{'to UCX posix':>13}")
    groups = {}
    for metric, size, who in results.samples:
        groups.setdefault(metric, {}).setdefault(size, []).append(who)
    for metric, sizes in groups.items():
        for size, everybody in sizes.items():
            for who in everybody:
                key, reference = (metric, size, who), (metric, size, "ucx posix")
                values = results.samples[key]
                of_what = str(size) if metric == sim_sizes.METRIC else size_text(size)
                row = (f"{metric:34} {of_what:>7} {who:24} {results.units[metric, size]:>6} "
                       f"{min(values):10.4g} {results.median(key):10.4g} {max(values):10.4g}")
                if reference in results.samples and who != "ucx posix":
                    row += f" {results.median(key) / results.median(reference):13.3g}"
                yield row
        yield ""


def verdict(row):
    if row["bound"] is None:
        return "a limit"
    text = "holds" if row["holds"] else "median holds" if row["median_holds"] else "MISSED"
    return f"{row['relation']} {row['bound']:<6} {text}"


def table(results, repetitions):
    yield from figure_rows(results)
    yield (f"{'target':56} {'ratio':>8} {'quartiles':>17} {'of best':>8}   bound    ({repetitions} repetitions; ratio: "
           "of medians)")
    for row in targets(results):
        if row["ratio"] is None:
            yield f"{row['target']:56} {'-':>8} {'-':>17} {'-':>8}   not measured"
            continue
        lower, upper = row["quartiles"]
        yield (f"{row['target']:56} {row['ratio']:8.3g} {lower:8.3g} {upper:8.3g} {row['ratio_of_best']:8.3g}   "
               f"{verdict(row)}")
    if results.missing:
        yield ""
        yield from (f"not measured: {what}: {why}" for what, why in results.missing.items())


def markdown(results):
    """The table of targets for a page."""
    yield "| figure | ratio | quartiles | bound | |"
    yield "|---|---|---|---|---|"
    for row in targets(results):
        if row["ratio"] is None:
            continue
        lower, upper = row["quartiles"]
        bound = "" if row["bound"] is None else f"{row['relation']} {row['bound']}"
        yield (f"| {row['target']} | {row['ratio']:.3g} | {lower:.3g} to {upper:.3g} | {bound} "
               f"| {verdict(row).removeprefix(bound).strip()} |")


def as_object(results, machine):
    return {"schema": 1, "machine": machine, "figures": results.as_list(), "targets": targets(results),
            "missing": [{"what": what, "why": why} for what, why in results.missing.items()]}
