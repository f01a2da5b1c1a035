#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a Fortran program of a group that calls all functions of that group with results that are checked.

    fortran_programs.py GROUP OUT

Each PE works on its neighbour. A result that is not as it should be ends the job by STOP 1.
"""

import pathlib
import re
import sys

HEAD = """! SPDX-License-Identifier: BSD-3-Clause
program main
  implicit none
  include 'mpp/shmem.fh'
  integer :: me, n, next, previous
{declarations}
  call start_pes(0)
  me = shmem_my_pe()
  n = shmem_n_pes()
  next = mod(me + 1, n)
  previous = mod(me + n - 1, n)
{body}
  call shmem_barrier_all()
  call shmem_finalize()
contains
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (.not. ok) then
      write (0, *) 'failed: ', what
      stop 1
    end if
  end subroutine
end program
"""

# What a transfer is called with: declaration, elements of the array in one element of the transfer, value of a PE.
ARRAYS = {"integer*4": "integer*4", "integer*8": "integer*8", "real*4": "real*4", "real*8": "real*8",
          "complex*8": "complex*8", "logical*4": "logical*4", "character": "character"}
TRANSFERS = {"put4": ("integer*4", 1), "put8": ("integer*8", 1), "put32": ("integer*4", 1), "put64": ("integer*8", 1),
             "put128": ("integer*8", 2), "putmem": ("character", 1), "character_put": ("character", 1),
             "integer_put": ("integer*4", 1), "logical_put": ("logical*4", 1), "real_put": ("real*4", 1),
             "double_put": ("real*8", 1), "complex_put": ("complex*8", 1)}
ATOMIC = {"int4": "integer*4", "int8": "integer*8", "real4": "real*4", "real8": "real*8"}
# Functions that the header leaves to the program to declare.
FUNCTIONS = {"my_pe": "integer", "num_pes": "integer", "shmem_my_pe": "integer", "shmem_n_pes": "integer",
             "shmem_test_lock": "integer", "shmem_ptr": "integer*8",
             **{f"shmem_{t}_{op}": kind for t, kind in ATOMIC.items() for op in ["fetch", "swap", "fadd", "finc", "cswap"]}}


def value(kind, pe):
    return {"character": f"char(65 + {pe})", "logical*4": f"mod({pe}, 2) == 0", "complex*8": f"cmplx({pe}, 7)"}.get(
        kind, f"{pe} + 5")


def same(kind, a, b):
    return f"{a} .eqv. {b}" if kind == "logical*4" else f"{a} == {b}"


def transfers(verb):
    """Puts and gets of this verb, or strided ones."""
    declarations, body = [], []
    for i, (name, (kind, width)) in enumerate(TRANSFERS.items()):
        at, local = f"a{i}", f"b{i}"
        declarations += [f"  {kind}, save :: {at}(8)", f"  {kind} :: {local}(8)"]
        mine, theirs, its = value(kind, "me"), value(kind, "previous"), value(kind, "next")
        if verb == "strided" and name in ["putmem", "character_put"]:
            continue
        call = f"shmem_{name}"
        if verb == "strided":
            body += [f"  {local} = {mine}", "  call shmem_barrier_all()",
                     f"  call {call.replace('put', 'iput')}({at}, {local}, 2, 1, 2, next)", "  call shmem_barrier_all()",
                     f"  call check({same(kind, f'{at}({2 * width + 1})', f'({theirs})')}, '{call} strided')",
                     f"  call {call.replace('put', 'iget')}({local}, {at}, 1, 2, 2, next)",
                     f"  call check({same(kind, f'{local}({width + 1})', f'({mine})')}, '{call} strided get')"]
            continue
        for nbi in ["", "_nbi"]:
            body.append("  call shmem_barrier_all()")
            if verb == "put":
                body += [f"  {local} = {mine}", f"  call {call}{nbi}({at}, {local}, {4 // width}, next)",
                         "  call shmem_quiet()", "  call shmem_barrier_all()",
                         f"  call check({same(kind, f'{at}(4)', f'({theirs})')}, '{call}{nbi}')"]
            else:
                body += [f"  {at} = {mine}", "  call shmem_barrier_all()",
                         f"  call {call.replace('put', 'get')}{nbi}({local}, {at}, {4 // width}, next)",
                         "  call shmem_quiet()", f"  call check({same(kind, f'{local}(4)', f'({its})')}, 'get of {name}{nbi}')"]
    return declarations, body


def init():
    return (["  integer :: major, minor", "  character(64) :: name", "  integer, save :: word", "  integer*8 :: where_is"],
            ["  call shmem_init()", "  call check(my_pe() == me .and. num_pes() == n, 'my_pe')",
             "  call check(shmem_pe_accessible(n - 1), 'pe_accessible')",
             "  call check(.not. shmem_pe_accessible(n), 'pe_accessible of none')",
             "  call check(shmem_addr_accessible(word, 0), 'addr_accessible')",
             "  where_is = shmem_ptr(word, me)", "  call check(where_is == loc(word), 'ptr')",
             "  call shmem_info_get_version(major, minor)", "  call check(major == 1 .and. minor == 5, 'version')",
             "  call shmem_info_get_name(name)", "  call check(name == shmem_vendor_string, 'name')",
             "  if (n < 0) call shmem_global_exit(1)"])


def heap():
    return (["  integer*8 :: block", "  integer :: status"],
            ["  call shpalloc(block, 100, status, 1)", "  call check(status == 0 .and. block /= 0, 'shpalloc')",
             "  call shpclmove(block, 200, status, 1)", "  call check(status == 0, 'shpclmove')",
             "  call shpdeallc(block, status, 1)", "  call check(status == 0, 'shpdeallc')",
             "  call shpalloc(block, 0, status, 0)", "  call check(status < 0, 'shpalloc of nothing')"])


def atomic():
    declarations, body = [], []
    for t, kind in ATOMIC.items():
        w = f"w_{t}"
        one = {"int4": "1_4", "int8": "1_8", "real4": "1.0_4", "real8": "1.0_8"}[t]
        declarations.append(f"  {kind}, save :: {w}")
        body += [f"  {w} = 3", "  call shmem_barrier_all()", f"  call check(shmem_{t}_fetch({w}, next) == 3, '{t} fetch')",
                 f"  call check(shmem_{t}_swap({w}, {one}, next) == 3, '{t} swap')",
                 f"  call shmem_{t}_set({w}, {one} + 1, next)", "  call shmem_barrier_all()",
                 f"  call check({w} == 2, '{t} set')", "  call shmem_barrier_all()"]
        if t.startswith("int"):
            body += [f"  call shmem_{t}_add({w}, {one} * 5, next)", f"  call shmem_{t}_inc({w}, next)",
                     "  call shmem_quiet()", f"  call check(shmem_{t}_fadd({w}, {one}, next) == 8, '{t} fadd')",
                     f"  call check(shmem_{t}_finc({w}, next) == 9, '{t} finc')",
                     f"  call check(shmem_{t}_cswap({w}, {one} * 10, {one}, next) == 10, '{t} cswap')",
                     "  call shmem_barrier_all()", f"  call check({w} == 1, '{t} at the end')", "  call shmem_barrier_all()"]
    return declarations, body


def wait():
    declarations, body = ["  integer*4, save :: plain"], []
    for t in ["int4", "int8"]:
        declarations.append(f"  integer*{t[3]}, save :: w_{t}")
        body += [f"  call shmem_{t}_set(w_{t}, 4_{t[3]}, next)", f"  call shmem_{t}_wait(w_{t}, 0_{t[3]})",
                 f"  call shmem_{t}_wait_until(w_{t}, shmem_cmp_ge, 4_{t[3]})", f"  call check(w_{t} == 4, '{t} wait')"]
    body += ["  call shmem_int4_set(plain, 2, next)", "  call shmem_wait(plain, 0)",
             "  call shmem_wait_until(plain, shmem_cmp_eq, 2)", "  call check(plain == 2, 'wait')"]
    return declarations, body


def barrier():
    return (["  integer, save :: sync(shmem_barrier_sync_size) = shmem_sync_value", "  integer, save :: a"],
            ["  call shmem_put4(a, me, 1, next)", "  call shmem_fence()", "  call shmem_quiet()",
             "  call shmem_barrier(0, 0, n, sync)", "  call check(a == previous, 'barrier')",
             "  call shmem_sync(0, 0, n, sync)", "  call shmem_sync_all()"])


def collective():
    declarations, body = ["  integer, save :: sync(shmem_collect_sync_size) = shmem_sync_value"], []
    for name, kind in {"4": 4, "8": 8, "32": 4, "64": 8}.items():
        s, d = f"s{name}", f"d{name}"
        declarations.append(f"  integer*{kind}, save :: {s}(256), {d}(256)")
        body += [f"  {s} = me + 1", f"  {d} = 0", "  call shmem_barrier_all()",
                 f"  call shmem_broadcast{name}({d}, {s}, 2, n - 1, 0, 0, n, sync)",
                 f"  if (me /= n - 1) call check({d}(2) == n, 'broadcast{name}')", "  call shmem_barrier_all()",
                 f"  call shmem_collect{name}({d}, {s}, 2, 0, 0, n, sync)",
                 f"  call check({d}(2 * n) == n, 'collect{name}')", "  call shmem_barrier_all()",
                 f"  call shmem_fcollect{name}({d}, {s}, 3, 0, 0, n, sync)",
                 f"  call check({d}(3 * n) == n .and. {d}(1) == 1, 'fcollect{name}')", "  call shmem_barrier_all()",
                 f"  call shmem_alltoall{name}({d}, {s}, 2, 0, 0, n, sync)",
                 f"  call check({d}(2 * n) == n, 'alltoall{name}')", "  call shmem_barrier_all()",
                 f"  call shmem_alltoalls{name}({d}, {s}, 1, 2, 2, 0, 0, n, sync)",
                 f"  call check({d}(2 * n) == n, 'alltoalls{name}')"]
    return declarations, body


def reduce():
    declarations, body = ["  integer, save :: sync(shmem_reduce_sync_size) = shmem_sync_value", "  integer :: i, bits"], []
    kinds = {"int2": "integer*2", "int4": "integer*4", "int8": "integer*8", "real4": "real*4", "real8": "real*8",
             "comp4": "complex*8", "comp8": "complex*16"}
    for t, kind in kinds.items():
        s, d, w = f"s_{t}", f"d_{t}", f"w_{t}"
        declarations.append(f"  {kind}, save :: {s}(4), {d}(4), {w}(shmem_reduce_min_wrkdata_size)")

        def call(op, expected, s=s, d=d, w=w, t=t):
            body.extend([f"  call shmem_{t}_{op}_to_all({d}, {s}, 4, 0, 0, n, {w}, sync)",
                         f"  call check({d}(4) == {expected}, '{t} {op}')", "  call shmem_barrier_all()"])

        body += [f"  {s} = me + 1", "  call shmem_barrier_all()"]
        call("sum", "n * (n + 1) / 2")
        if not t.startswith("comp"):
            call("max", "n")
            call("min", "1")
        if t.startswith("int"):
            for op, function in [("and", "iand"), ("or", "ior"), ("xor", "ieor")]:
                body += ["  bits = 1", "  do i = 2, n", f"    bits = {function}(bits, i)", "  end do"]
                call(op, "bits")
        body += [f"  {s} = 1", f"  if (me == 0) {s} = 5", "  call shmem_barrier_all()"]
        call("prod", "5")
    return declarations, body


def lock():
    return (["  integer*8, save :: word", "  integer, save :: sum", "  integer :: i, seen"],
            ["  do i = 1, 10", "    if (shmem_test_lock(word) /= 0) call shmem_set_lock(word)",
             "    call shmem_get4(seen, sum, 1, 0)", "    call shmem_put4(sum, seen + 1, 1, 0)",
             "    call shmem_clear_lock(word)", "  end do", "  call shmem_barrier_all()",
             "  call shmem_get4(seen, sum, 1, 0)", "  call check(seen == 10 * n, 'lock')"])


def cache():
    return (["  integer, save :: line"],
            [f"  call shmem_{name}()" for name in ["clear_cache_inv", "set_cache_inv", "udcflush"]] +
            [f"  call shmem_{name}(line)" for name in ["set_cache_line_inv", "udcflush_line"]])


GROUPS = {"init": init, "heap": heap, "put": lambda: transfers("put"), "get": lambda: transfers("get"),
          "strided": lambda: transfers("strided"), "atomic": atomic, "wait": wait, "barrier": barrier,
          "collective": collective, "reduce": reduce, "lock": lock, "cache": cache}


def main():
    declarations, body = GROUPS[sys.argv[1]]()
    called = {"shmem_my_pe", "shmem_n_pes", *re.findall(r"\w+", "\n".join(body))}
    declarations += [f"  {kind}, external :: {name}" for name, kind in FUNCTIONS.items() if name in called]
    text = HEAD.format(declarations="\n".join(declarations), body="\n".join(body))
    pathlib.Path(sys.argv[2]).write_text(text)


main()
