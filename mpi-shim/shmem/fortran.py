# SPDX-License-Identifier: BSD-3-Clause
"""The Fortran interface of libsma: subroutines and functions of Cray's SHMEM, from the types of Fortran.

Names have a trailing underscore, arguments are addresses. Each body calls the C function of the same meaning.
"""

# Name of a type: type of C.
INTEGERS = {"int4": "int32_t", "int8": "int64_t"}
VALUES = {**INTEGERS, "real4": "float", "real8": "double"}
C_NAME = {"int2": "short", "int4": "int", "int8": "long", "real4": "float", "real8": "double", "comp4": "complexf",
          "comp8": "complexd"}
C_TYPE = {"int2": "short", "int4": "int", "int8": "long", "real4": "float", "real8": "double", "comp4": "float _Complex",
          "comp8": "double _Complex"}
# What a transfer is called: the C function's middle, and how many of its elements one of Fortran's is.
TRANSFERS = {"put4": "32", "put8": "64", "put32": "32", "put64": "64", "put128": "128", "putmem": "mem",
             "character_put": "8", "integer_put": "32", "logical_put": "32", "real_put": "32", "double_put": "64",
             "complex_put": "64"}

FUNCTIONS = []      # (group, returns, name, parameters, body)


def add(group, name, params, body, returns="void"):
    FUNCTIONS.append((group, returns, name, params, body))


def simple(group, name, params, call, returns="void"):
    add(group, name, params, ("return " if returns != "void" else "") + call + ";", returns)


for name in ["start_pes"]:
    simple("init", name, "const int *npes", "pshmem_init(); (void)npes")
simple("init", "shmem_init", "void", "pshmem_init()")
simple("init", "shmem_finalize", "void", "pshmem_finalize()")
simple("init", "shmem_global_exit", "const int *status", "pshmem_global_exit(*status)")
for name in ["my_pe", "shmem_my_pe"]:
    simple("init", name, "void", "pshmem_my_pe()", "int")
for name in ["num_pes", "shmem_n_pes"]:
    simple("init", name, "void", "pshmem_n_pes()", "int")
simple("init", "shmem_pe_accessible", "const int *pe", "pshmem_pe_accessible(*pe)", "int")
simple("init", "shmem_addr_accessible", "const void *addr, const int *pe", "pshmem_addr_accessible(addr, *pe)", "int")
simple("init", "shmem_ptr", "const void *dest, const int *pe", "pshmem_ptr(dest, *pe)", "void *")
simple("init", "shmem_info_get_version", "int *major, int *minor", "pshmem_info_get_version(major, minor)")
add("init", "shmem_info_get_name", "char *name, size_t name_bytes",
    "size_t n = strlen(SHMEM_VENDOR_STRING); memset(name, ' ', name_bytes); "
    "memcpy(name, SHMEM_VENDOR_STRING, n < name_bytes ? n : name_bytes);")
for name, inner in [("shpalloc", "alloc"), ("shpclmove", "move")]:
    simple("heap", name, "void **address, const int *words, int *status, const int *shall_abort",
           f"smai_fortran_{inner}(address, words, status, shall_abort)")
simple("heap", "shpdeallc", "void **address, int *status, const int *shall_abort",
       "smai_fortran_free(address, status, shall_abort)")

for name, middle in TRANSFERS.items():
    for verb in ["put", "get"]:
        called = "shmem_" + name.replace("put", verb)
        simple(verb, called, "void *dest, const void *source, const int *nelems, const int *pe",
               f"pshmem_{verb}{middle}(dest, source, (size_t)*nelems, *pe)")
        simple(verb, called + "_nbi", "void *dest, const void *source, const int *nelems, const int *pe",
               f"pshmem_{verb}{middle}_nbi(dest, source, (size_t)*nelems, *pe)")
        if middle in ["mem", "8"]:
            continue
        simple("strided", called.replace(verb, "i" + verb),
               "void *dest, const void *source, const int *dst, const int *sst, const int *nelems, const int *pe",
               f"pshmem_i{verb}{middle}(dest, source, *dst, *sst, (size_t)*nelems, *pe)")

for t, c in VALUES.items():
    n = C_NAME[t]
    simple("atomic", f"shmem_{t}_swap", f"{c} *dest, const {c} *value, const int *pe",
           f"pshmem_{n}_swap(({C_TYPE[t]} *)dest, *value, *pe)", c)
    simple("atomic", f"shmem_{t}_fetch", f"const {c} *source, const int *pe",
           f"pshmem_{n}_fetch((const {C_TYPE[t]} *)source, *pe)", c)
    simple("atomic", f"shmem_{t}_set", f"{c} *dest, const {c} *value, const int *pe",
           f"pshmem_{n}_set(({C_TYPE[t]} *)dest, *value, *pe)")
for t, c in INTEGERS.items():
    n = C_NAME[t]
    at = f"({C_TYPE[t]} *)"
    simple("atomic", f"shmem_{t}_cswap", f"{c} *dest, const {c} *cond, const {c} *value, const int *pe",
           f"pshmem_{n}_cswap({at}dest, *cond, *value, *pe)", c)
    simple("atomic", f"shmem_{t}_finc", f"{c} *dest, const int *pe", f"pshmem_{n}_finc({at}dest, *pe)", c)
    simple("atomic", f"shmem_{t}_inc", f"{c} *dest, const int *pe", f"pshmem_{n}_inc({at}dest, *pe)")
    simple("atomic", f"shmem_{t}_fadd", f"{c} *dest, const {c} *value, const int *pe",
           f"pshmem_{n}_fadd({at}dest, *value, *pe)", c)
    simple("atomic", f"shmem_{t}_add", f"{c} *dest, const {c} *value, const int *pe",
           f"pshmem_{n}_add({at}dest, *value, *pe)")
    simple("wait", f"shmem_{t}_wait", f"{c} *ivar, const {c} *value", f"pshmem_{n}_wait({at}ivar, *value)")
    simple("wait", f"shmem_{t}_wait_until", f"{c} *ivar, const int *cmp, const {c} *value",
           f"pshmem_{n}_wait_until({at}ivar, *cmp, *value)")
simple("wait", "shmem_wait", "int32_t *ivar, const int32_t *value", "pshmem_int_wait(ivar, *value)")
simple("wait", "shmem_wait_until", "int32_t *ivar, const int *cmp, const int32_t *value",
       "pshmem_int_wait_until(ivar, *cmp, *value)")

SET = "const int *start, const int *log_stride, const int *size, {more}void *sync"
SET_ARGS = "*start, *log_stride, *size, {more}sync"
for name in ["barrier_all", "sync_all", "fence", "quiet"]:
    simple("barrier", f"shmem_{name}", "void", f"pshmem_{name}()")
for name in ["barrier", "sync"]:
    simple("barrier", f"shmem_{name}", SET.format(more=""), f"pshmem_{name}({SET_ARGS.format(more='')})")
for name, middle in {"4": "32", "8": "64", "32": "32", "64": "64"}.items():
    simple("collective", f"shmem_broadcast{name}",
           f"void *dest, const void *source, const int *nelems, const int *root, {SET.format(more='')}",
           f"pshmem_broadcast{middle}(dest, source, (size_t)*nelems, *root, {SET_ARGS.format(more='')})")
    for kind in ["collect", "fcollect", "alltoall"]:
        simple("collective", f"shmem_{kind}{name}", f"void *dest, const void *source, const int *nelems, {SET.format(more='')}",
               f"pshmem_{kind}{middle}(dest, source, (size_t)*nelems, {SET_ARGS.format(more='')})")
    simple("collective", f"shmem_alltoalls{name}", "void *dest, const void *source, const int *dst, const int *sst, "
           f"const int *nelems, {SET.format(more='')}",
           f"pshmem_alltoalls{middle}(dest, source, *dst, *sst, (size_t)*nelems, {SET_ARGS.format(more='')})")
for t in ["int2", "int4", "int8", "real4", "real8", "comp4", "comp8"]:
    ops = ["sum", "prod"]
    ops += [] if t.startswith("comp") else ["max", "min"]
    ops += ["and", "or", "xor"] if t.startswith("int") else []
    for op in ops:
        simple("reduce", f"shmem_{t}_{op}_to_all",
               f"void *dest, const void *source, const int *nreduce, {SET.format(more='void *work, ')}",
               f"pshmem_{C_NAME[t]}_{op}_to_all(dest, source, *nreduce, {SET_ARGS.format(more='work, ')})")
simple("lock", "shmem_set_lock", "int64_t *lock", "pshmem_set_lock((long *)lock)")
simple("lock", "shmem_test_lock", "int64_t *lock", "pshmem_test_lock((long *)lock)", "int")
simple("lock", "shmem_clear_lock", "int64_t *lock", "pshmem_clear_lock((long *)lock)")
for name in ["clear_cache_inv", "set_cache_inv", "udcflush"]:
    simple("cache", f"shmem_{name}", "void", f"pshmem_{name}()")
for name in ["set_cache_line_inv", "udcflush_line"]:
    simple("cache", f"shmem_{name}", "void *dest", f"pshmem_{name}(dest)")
