/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Experiments: what the sources say of a machine, held against what the model gives (spec/machines.md, rows "to
 * reproduce").
 *
 * An experiment is a row of a table; each machine has its table in a file of its own, registry.c lists the tables. Its
 * function gets a struct emu_exp, reads the context in it, and reports each metric once, in a fixed order. It prints
 * nothing itself and has no globals: several experiments run at the same time, each in a process of its own.
 *
 * One metric is one line (spec/machines.md 0.5):
 *   EXP <id> <metric> src=<value> got=<value> unit=<u> tol=<t> kind=<A|S|K|P|F|Q> seed=<n> verdict=<PASS|FAIL>
 *   class=<measured|counted|fitted|formula>
 * A tolerance is the specification's, never wider in quick mode; a FAIL is an honest answer and gets an emu_exp_why().
 *
 * The kind says what the source's figure asks for, the class what ours is worth as evidence. A figure without a class
 * fails; so does one that says "measured" when no packet was simulated for it, and one that says "fitted" and names no
 * row of the ledger (ledger.h). An experiment's row has a class for each of its kinds; emu_exp_class() is for figures
 * that differ from it.
 *
 * Example:
 *   static int run_xc20(struct emu_exp *x)
 *   {
 *       struct emu_machine *m;
 *       int r = emu_exp_machine(x, "aries:groups=241", &m);
 *
 *       if (r < 0)
 *           return r;
 *       emu_exp_exact(x, 'A', "minimal_hops_max", "hops", 5, longest_minimal(m));
 *       emu_exp_figure(x, 'P', "hop_slope", "ns", emu_exp_within(100, 0.01), slope(m));
 *       emu_exp_at_most(x, 'P', "put_latency_max", "us", 2.0, farthest_put(m));
 *       emu_machine_destroy(m);
 *       return 0;
 *   }
 *
 *   const struct emu_experiment emu_xc_experiments[] = {
 *       { "XC-20", "aries", "AP", "CM", EMU_EXP_PACKETS, "about 100 ns per hop, at most 5 minimal hops", run_xc20 },
 *       { "XC-36", "aries", "F", "-", EMU_EXP_LIVE, "communication domain: contact outside is refused" },
 *       { 0 },
 *   };
 */
#ifndef EMUNIC_EXPERIMENTS_EXPERIMENT_H
#define EMUNIC_EXPERIMENTS_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "emunic/fabric/machine.h"

struct emu_exp;

enum emu_exp_needs {
    EMU_EXP_ANALYTIC = 0, /* counts or computes on the machine: the seed does not matter, so it runs once */
    EMU_EXP_PACKETS,      /* the packet simulator: once per seed */
    EMU_EXP_LIVE,         /* real processes: listed, never run here; `run` is NULL */
};

/* What a figure is worth as evidence. The letters are those of emu_experiment.classes. */
enum emu_exp_class {
    EMU_CLASS_NONE = 0,
    EMU_CLASS_MEASURED, /* M: read off packets that were simulated */
    EMU_CLASS_COUNTED,  /* C: counted on the built machine: links, routes, lengths of paths */
    EMU_CLASS_FITTED,   /* K: a parameter was chosen so that it comes out; the ledger has the parameter */
    EMU_CLASS_FORMULA,  /* F: computed from parameters or other figures; no machine, no packet */
};

struct emu_experiment {
    const char *id;      /* "XC-24"; the parts of a row ("TITAN-2a") are one experiment "TITAN-2" */
    const char *machine; /* as the command takes it: "aries"; "all" for those that compare machines */
    const char *kinds;   /* letters of spec/machines.md 0.2, each once: "AS" */
    const char
        *classes; /* of the figures of each kind, in this order: M C K F of enum emu_exp_class, '-': no figures */
    enum emu_exp_needs needs;
    const char *summary; /* one line, no full stop, up to 80 characters */
    /* Reports the metrics. 0, or negative errno: then the experiment has failed, and a line says so. */
    int (*run)(struct emu_exp *x);
};

/* ---- what the experiment is given: read only, valid until run() returns ---- */

struct emu_exp_context {
    uint64_t seed;
    bool is_full;            /* false: reduced size, all quick experiments of one machine within 45 s of one core */
    uint32_t n_threads;      /* for emu_sim_options; the results must not depend on it */
    const char *machine_dir; /* for emu_machine_load() */
    const char *data_dir;    /* for emu_exp_data(); NULL: nobody wants plots */
};

const struct emu_exp_context *emu_exp_context(const struct emu_exp *x);

/* emu_machine_load() with the context's folder. A fault is reported as a detail line; just return the result. */
int emu_exp_machine(struct emu_exp *x, const char *spec, struct emu_machine **m_out);

/* How far it is, 0 .. 1; cheap, may be called often. For a bar on the terminal. */
void emu_exp_progress(struct emu_exp *x, double fraction);

/* The file <data_dir>/<id>-<name>.tsv for a plot, "wb", with the header that tools/simplot.py reads; the caller writes
 * lines "series<TAB>x<TAB>y" and closes it. NULL: nobody wants it, or it cannot be made (a detail line says so).
 * The name has letters, digits, '-' and '_'. */
FILE *emu_exp_data(struct emu_exp *x, const char *name, const char *title, const char *x_label, const char *y_label);

/* ---- reporting ---- */

/* The metrics that follow belong to this part of the row: "a" makes TITAN-2 into TITAN-2a. NULL: to the whole. */
void emu_exp_part(struct emu_exp *x, const char *part);

/* How a metric is judged. `tol` and the others are fields of struct emu_metric. */
enum emu_tolerance {
    EMU_TOL_EXACT = 0, /* equal, but for the last digits of floating-point arithmetic (1e-9 of src) */
    EMU_TOL_ROUNDED,   /* equal once `got` is rounded to the `decimals` digits that the source prints */
    EMU_TOL_RELATIVE,  /* |got - src| <= tol * |src|; 0.02 prints as 2% */
    EMU_TOL_ABSOLUTE,  /* |got - src| <= tol, in the metric's unit; prints as +-0.05 */
    EMU_TOL_AT_LEAST,  /* got >= src */
    EMU_TOL_AT_MOST,   /* got <= src */
    EMU_TOL_ABOVE,     /* got > src */
    EMU_TOL_BELOW,     /* got < src */
    EMU_TOL_RANGE,     /* src <= got <= src_high */
    EMU_TOL_TEXT,      /* src_text and got_text are the same words */
};

struct emu_metric {
    char kind;                   /* A S K P F Q */
    enum emu_exp_class class_of; /* EMU_CLASS_NONE: that of emu_exp_class(), or of the experiment's row */
    const char *name;            /* lower case letters, digits, '_': "put8_latency" */
    const char *unit;            /* no blanks: "us", "GB/s"; NULL: "1" */
    enum emu_tolerance tolerance;
    double src;
    double src_high; /* EMU_TOL_RANGE */
    double got;      /* not a number, or infinite: FAIL */
    double tol;
    int decimals;         /* EMU_TOL_ROUNDED */
    const char *src_text; /* EMU_TOL_TEXT; blanks are printed as '_' */
    const char *got_text;
    const char *param_name; /* fitted only, and required there: the parameter as the ledger has it ... */
    double param_value;     /* ... and its value. "x1:host.caf_ns" names another machine than the experiment's */
};

/* Returns the verdict. Texts are copied. A kind that the experiment's row does not name is a FAIL, and so is a figure
 * whose class is not true. */
bool emu_exp_report(struct emu_exp *x, const struct emu_metric *metric);

/* The class of the next figure alone. */
void emu_exp_class(struct emu_exp *x, enum emu_exp_class class_of);

/* What the source says, and how near a figure has to come to it. */
struct emu_exp_source {
    enum emu_tolerance tolerance;
    double src;
    double src_high;
    double tol;
    int decimals;
};

/* Equal once the figure is rounded to the decimals that the source prints. */
static inline struct emu_exp_source emu_exp_rounded(double src, int decimals)
{
    return (struct emu_exp_source){ .tolerance = EMU_TOL_ROUNDED, .src = src, .decimals = decimals };
}

/* Within a fraction of it. */
static inline struct emu_exp_source emu_exp_within(double src, double fraction)
{
    return (struct emu_exp_source){ .tolerance = EMU_TOL_RELATIVE, .src = src, .tol = fraction };
}

/* Within a distance, in the metric's unit. */
static inline struct emu_exp_source emu_exp_points(double src, double distance)
{
    return (struct emu_exp_source){ .tolerance = EMU_TOL_ABSOLUTE, .src = src, .tol = distance };
}

static inline struct emu_exp_source emu_exp_range(double low, double high)
{
    return (struct emu_exp_source){ .tolerance = EMU_TOL_RANGE, .src = low, .src_high = high };
}

/* The same in one line each. */
bool emu_exp_figure(struct emu_exp *x, char kind, const char *name, const char *unit, struct emu_exp_source source,
                    double got);
bool emu_exp_exact(struct emu_exp *x, char kind, const char *name, const char *unit, double src, double got);
bool emu_exp_at_least(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got);
bool emu_exp_at_most(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got);
bool emu_exp_above(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got);
bool emu_exp_below(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got);
bool emu_exp_text(struct emu_exp *x, char kind, const char *name, const char *src, const char *got);
/* src=yes; for an order or a property that holds or not. */
bool emu_exp_holds(struct emu_exp *x, char kind, const char *name, bool is_so);
/* Kind K: within 2 % after fitting, with the parameter (spec/machines.md 0.2). */
struct emu_exp_param {
    const char *name;
    double value;
};
static inline struct emu_exp_param emu_exp_param(const char *name, double value)
{
    return (struct emu_exp_param){ .name = name, .value = value };
}
bool emu_exp_fitted(struct emu_exp *x, const char *name, const char *unit, double src, double got,
                    struct emu_exp_param param);

/* A free line for people, printed as "# text" behind the metrics before it. No newline in it. */
void emu_exp_detail(struct emu_exp *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Why the metric just reported fails, or would: what was looked into and found. Printed, and in
 * docs/generated/fidelity.md, if it did fail; dropped if it passed. */
void emu_exp_why(struct emu_exp *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The metric just reported is judged otherwise than before: its bound was our reading of the source and is revised, or
 * what is measured is read in another way. The verdict before is printed beside the one now, and on the page.
 */
struct emu_exp_before {
    struct emu_exp_source source;
    double got;       /* what was measured before; not a number: the same */
    const char *text; /* why: "bound of ours, revised: 1 + 6 x 135 / 380 = 3.1" */
};
void emu_exp_before(struct emu_exp *x, const struct emu_exp_before *before);

/* ---- registry ---- */

/* Tables, each ended by a row without id; NULL behind the last. */
extern const struct emu_experiment *const emu_experiment_tables[];

/* In the order of the tables; NULL behind the last one. */
const struct emu_experiment *emu_experiment_at(size_t index);

/* "xc-24" as well as "XC-24"; "TITAN-2a" finds TITAN-2. NULL: no such experiment. */
const struct emu_experiment *emu_experiment_find(const char *id);

#endif
