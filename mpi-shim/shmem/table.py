# SPDX-License-Identifier: BSD-3-Clause
"""The table of libsma: its types and its functions. Everything else of the interface is generated from it.

A family is a set of functions that differ in a type, in a size, or in having a context. In its name {C} is where `ctx_`
goes and {T} the name of the type; in parameters and body {t} is the C type, {n} bytes of an element, {ctx} the context,
{CALL} the name of the function, {U} the function that combines two arrays.
"""

import collections

# Name in functions: type of C.
TYPES = {
    "float": "float", "double": "double", "longdouble": "long double", "char": "char", "schar": "signed char",
    "short": "short", "int": "int", "long": "long", "longlong": "long long", "uchar": "unsigned char",
    "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long", "ulonglong": "unsigned long long",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "size": "size_t", "ptrdiff": "ptrdiff_t",
    "complexf": "float _Complex", "complexd": "double _Complex",
}
# What names of the same type are called in selections by type and in generated helpers.
BASE = {"int8": "schar", "int16": "short", "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort",
        "uint32": "uint", "uint64": "ulong", "size": "ulong", "ptrdiff": "long"}

RMA = [name for name in TYPES if not name.startswith("complex")]
AMO = ["int", "long", "longlong", "uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64", "size", "ptrdiff"]
AMO_EXTENDED = ["float", "double", *AMO]
AMO_BITWISE = ["uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64"]
P2P = ["short", "ushort", *AMO]
REDUCE_BITWISE = ["uchar", "ushort", "uint", "ulong", "ulonglong", "int8", "int16", "int32", "int64", "uint8", "uint16",
                  "uint32", "uint64", "size"]
REDUCE_ORDER = RMA
REDUCE_SUM = [*RMA, "complexf", "complexd"]
OLD_BITWISE = ["short", "int", "long", "longlong"]
OLD_ORDER = [*OLD_BITWISE, "float", "double", "longdouble"]
OLD_SUM = [*OLD_ORDER, "complexf", "complexd"]
OLD_INTEGER = ["int", "long", "longlong"]
OLD_VALUE = ["float", "double", *OLD_INTEGER]
OLD_WAIT = ["short", "int", "long", "longlong"]
# Elements of a size: name -> bytes.
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
WORDS = {"32": 4, "64": 8}

LISTS = {"RMA": RMA, "AMO": AMO, "AMO_EXTENDED": AMO_EXTENDED, "AMO_BITWISE": AMO_BITWISE, "P2P": P2P,
         "REDUCE_BITWISE": REDUCE_BITWISE, "REDUCE_ORDER": REDUCE_ORDER, "REDUCE_SUM": REDUCE_SUM,
         "OLD_BITWISE": OLD_BITWISE, "OLD_ORDER": OLD_ORDER, "OLD_SUM": OLD_SUM, "OLD_INTEGER": OLD_INTEGER,
         "OLD_VALUE": OLD_VALUE, "OLD_WAIT": OLD_WAIT}

Family = collections.namedtuple("Family", "group name returns params types body has_ctx generic doc old")

# Page: title, then what its functions have in common.
GROUPS = {
    "shmem_init": ("start, end, identity", "Every PE starts the library before it calls anything else of it. "
                   "A program that ends with status 0 without shmem_finalize() is finalised at exit."),
    "shmem_malloc": ("the symmetric heap", "All PEs make the same calls with the same sizes, in the same order; each "
                     "call waits for all of them. The heap is DMAPP's: blocks of dmapp_sheap_malloc() lie in it, too."),
    "shmem_ctx": ("contexts", "A context says which team its PE numbers belong to. All contexts of a process share one "
                  "stream of operations, so completing one completes all."),
    "shmem_team": ("teams", "Collective calls are made by all PEs of the (parent) team. At most 61 teams besides the "
                   "predefined ones have a PE in common."),
    "shmem_put": ("puts", "On memory that is mapped here a put is complete and visible when the call returns. Elsewhere "
                  "a blocking put returns when the data are there, a non-blocking one at once."),
    "shmem_get": ("gets", "The data are there when a blocking call returns, after a quiet for a non-blocking one."),
    "shmem_put_signal": ("puts with signal, signals", "The signal word changes after the data have arrived. sig_op is "
                         "SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD."),
    "shmem_atomic": ("atomics", "Atomic among all atomics of all PEs on the same word; the word is aligned. Fetching "
                     "calls block, but for the _nbi ones, which are complete after a quiet."),
    "shmem_broadcast": ("collectives that move data", "All PEs of the team or active set call. Buffers are symmetric, "
                        "and dest is ready everywhere when the first PE calls. pSync is not used."),
    "shmem_reduce": ("reductions", "All PEs of the team or active set call. All PEs get the same bits. dest and source "
                     "are symmetric, and the same or apart. pWrk and pSync are not used."),
    "shmem_barrier": ("barriers and ordering", "A barrier completes all operations of its callers, a sync does not."),
    "shmem_wait_until": ("waiting and testing", "Each looks at symmetric memory of the caller. cmp is SHMEM_CMP_EQ, NE, "
                         "GT, GE, LT or LE. Elements whose status is not 0 are left out; status may be NULL."),
    "shmem_lock": ("locks", "A lock is a symmetric long, 0 at the start. Who asks first gets it first."),
    "shmem_cache": ("cache calls", "Without effect: caches are coherent."),
}

FAMILIES = []
# Selections by type under older names: name -> that of today.
OLD_GENERICS = {}


def add(group, name, returns, params, body, doc="", types=None, has_ctx=False, generic=None, old=False):
    FAMILIES.append(Family(group, name, returns, params, types, body, has_ctx, generic, doc, old))


def remote(at):
    return f"(struct smai_remote){{{{ {{ctx}}, {at}, pe, {{CALL}} }}}}"


# ---- start, end, identity ----

add("shmem_init", "shmem_init", "void", "void", "smai_init();",
    "Starts the library, or does nothing if it runs. A failure ends the job with a message.")
add("shmem_init", "shmem_init_thread", "int", "int requested, int *provided", "return smai_init_thread(requested, provided);",
    "The same, and asks for a level of threads. All levels are provided. 0; -1: there is no such level.")
add("shmem_init", "shmem_query_thread", "void", "int *provided", "smai_query_thread(provided);", "The level in force.")
add("shmem_init", "shmem_finalize", "void", "void", "smai_finalize();",
    "Completes everything, waits for all PEs and ends the library for good.")
add("shmem_init", "shmem_global_exit", "void", "int status", "smai_global_exit(status);",
    "Ends the job, from any PE. Does not return.")
add("shmem_init", "shmem_my_pe", "int", "void", "return smai_my_pe();", "Number of this PE.")
add("shmem_init", "shmem_n_pes", "int", "void", "return smai_n_pes();", "Number of PEs.")
add("shmem_init", "shmem_pe_accessible", "int", "int pe", "return smai_pe_accessible(pe);", "1 if there is that PE.")
add("shmem_init", "shmem_addr_accessible", "int", "const void *addr, int pe", "return smai_addr_accessible(addr, pe);",
    "1 if the address is symmetric and there is that PE.")
add("shmem_init", "shmem_ptr", "void *", "const void *dest, int pe", "return smai_ptr(dest, pe);",
    "Where the PE's copy of dest lies here. NULL: the PE is on another node, the data path is routed, or dest is not "
    "symmetric. What is done there is not counted by the model.")
add("shmem_init", "shmem_info_get_version", "void", "int *major, int *minor", "smai_info_get_version(major, minor);",
    "1 and 5.")
add("shmem_init", "shmem_info_get_name", "void", "char *name", "smai_info_get_name(name);",
    "SHMEM_VENDOR_STRING. name has SHMEM_MAX_NAME_LEN bytes.")
add("shmem_init", "shmem_pcontrol", "void", "int level, ...", "(void)level;", "Without effect; for tools that wrap it.")
add("shmem_init", "start_pes", "void", "int npes", "smai_start_pes(npes);", "shmem_init().", old=True)
for name in ["_my_pe", "my_pe"]:
    add("shmem_init", name, "int", "void", "return smai_my_pe();", "shmem_my_pe().", old=True)
for name in ["_num_pes", "num_pes"]:
    add("shmem_init", name, "int", "void", "return smai_n_pes();", "shmem_n_pes().", old=True)

# ---- heap ----

add("shmem_malloc", "shmem_malloc", "void *", "size_t size", "return smai_malloc(size);",
    "A block, aligned to 64 bytes. NULL: size 0, or no room.")
add("shmem_malloc", "shmem_malloc_with_hints", "void *", "size_t size, long hints",
    "return smai_malloc_with_hints(size, hints);", "The same; hints change nothing.")
add("shmem_malloc", "shmem_calloc", "void *", "size_t count, size_t size", "return smai_calloc(count, size);",
    "The same, zeroed.")
add("shmem_malloc", "shmem_align", "void *", "size_t alignment, size_t size", "return smai_align(alignment, size);",
    "The same, aligned to a power of two. NULL: no such alignment.")
add("shmem_malloc", "shmem_realloc", "void *", "void *ptr, size_t size", "return smai_realloc(ptr, size);",
    "Another size for a block. NULL: no room, the block is as it was; or size 0, it is free.")
add("shmem_malloc", "shmem_free", "void", "void *ptr", "smai_free(ptr);", "Frees a block. NULL: nothing.")
for old, new, params, args in [("shmalloc", "malloc", "size_t size", "size"), ("shmemalign", "align",
                               "size_t alignment, size_t size", "alignment, size"),
                               ("shrealloc", "realloc", "void *ptr, size_t size", "ptr, size")]:
    add("shmem_malloc", old, "void *", params, f"return smai_{new}({args});", f"shmem_{new}().", old=True)
add("shmem_malloc", "shfree", "void", "void *ptr", "smai_free(ptr);", "shmem_free().", old=True)

# ---- contexts and teams ----

add("shmem_ctx", "shmem_ctx_create", "int", "long options, shmem_ctx_t *ctx", "return smai_ctx_create(options, ctx);",
    "A context of the world. 0; -1: unknown options, or out of memory, and *ctx is SHMEM_CTX_INVALID.")
add("shmem_ctx", "shmem_team_create_ctx", "int", "shmem_team_t team, long options, shmem_ctx_t *ctx",
    "return smai_team_create_ctx(team, options, ctx);", "The same of a team. -1 also: no team.")
add("shmem_ctx", "shmem_ctx_destroy", "void", "shmem_ctx_t ctx", "smai_ctx_destroy(ctx);",
    "Completes its operations and ends it. SHMEM_CTX_INVALID: nothing.")
add("shmem_ctx", "shmem_ctx_get_team", "int", "shmem_ctx_t ctx, shmem_team_t *team",
    "return smai_ctx_get_team(ctx, team);", "Its team. 0; -1: no context, and *team is SHMEM_TEAM_INVALID.")
add("shmem_team", "shmem_team_my_pe", "int", "shmem_team_t team", "return smai_team_my_pe(team);",
    "This PE's number in the team; -1: no team.")
add("shmem_team", "shmem_team_n_pes", "int", "shmem_team_t team", "return smai_team_n_pes(team);",
    "Number of its PEs; -1: no team.")
add("shmem_team", "shmem_team_get_config", "int", "shmem_team_t team, long config_mask, shmem_team_config_t *config",
    "return smai_team_get_config(team, config_mask, config);",
    "What it was created with. 0; -1: no team, or an unknown bit.")
add("shmem_team", "shmem_team_translate_pe", "int", "shmem_team_t src_team, int src_pe, shmem_team_t dest_team",
    "return smai_team_translate_pe(src_team, src_pe, dest_team);", "A PE's number in another team; -1: it has none.")
add("shmem_team", "shmem_team_ptr", "void *", "shmem_team_t team, const void *dest, int pe",
    "return smai_team_ptr(team, dest, pe);", "As shmem_ptr(), of a PE of the team; NULL also for no team. Of OpenSHMEM 1.6.")
add("shmem_team", "shmem_team_split_strided", "int", "shmem_team_t parent_team, int start, int stride, int size, "
    "const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team",
    "return smai_team_split_strided(parent_team, start, stride, size, "
    "&(struct smai_team_wish){{ config, config_mask, new_team }});",
    "A team of some PEs of another. The stride may be negative. 0; -1: arguments, or no slot is free. *new_team is "
    "SHMEM_TEAM_INVALID in PEs that are not in it.")
add("shmem_team", "shmem_team_split_2d", "int", "shmem_team_t parent_team, int xrange, "
    "const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team, "
    "const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team",
    "return smai_team_split_2d(parent_team, xrange, &(struct smai_team_wish){{ xaxis_config, xaxis_mask, xaxis_team }}, "
    "&(struct smai_team_wish){{ yaxis_config, yaxis_mask, yaxis_team }});",
    "The row and the column of this PE in rows of xrange PEs. 0; -1: as above.")
add("shmem_team", "shmem_team_destroy", "void", "shmem_team_t team", "smai_team_destroy(team);",
    "Ends a team and its contexts. SHMEM_TEAM_INVALID: nothing. A predefined team ends the job with a message.")

# ---- puts and gets ----

for verb, nbi in [("put", ""), ("put", "_nbi"), ("get", ""), ("get", "_nbi")]:
    is_put = verb == "put"
    at, local = ("dest", "source") if is_put else ("source", "dest")
    body = f"smai_{verb}({remote(at)}, {local}, nelems, {{n}}, {'true' if nbi else 'false'});"
    kind = ("Copies nelems elements " + ("to" if is_put else "from") + " the PE" +
            (", complete after a quiet." if nbi else "."))
    group = f"shmem_{verb}"
    add(group, f"shmem_{{C}}{{T}}_{verb}{nbi}", "void", "{t} *dest, const {t} *source, size_t nelems, int pe", body, kind,
        RMA, True, (f"shmem_{verb}{nbi}", 0))
    add(group, f"shmem_{{C}}{verb}{{T}}{nbi}", "void", "void *dest, const void *source, size_t nelems, int pe", body,
        kind + " Elements of so many bits.", SIZES, True)
    add(group, f"shmem_{{C}}{verb}mem{nbi}", "void", "void *dest, const void *source, size_t nelems, int pe",
        body.replace("{n}", "1"), kind + " Bytes.", None, True)
add("shmem_put", "shmem_{C}{T}_p", "void", "{t} *dest, {t} value, int pe",
    f"smai_put({remote('dest')}, &value, 1, {{n}}, false);", "Stores one element.", RMA, True, ("shmem_p", 0))
add("shmem_get", "shmem_{C}{T}_g", "{t}", "const {t} *source, int pe",
    f"{{t}} value = 0; smai_get({remote('source')}, &value, 1, {{n}}, false); return value;", "Loads one element.", RMA,
    True, ("shmem_g", 0))
for verb in ["iput", "iget"]:
    at = "dest" if verb == "iput" else "source"
    strides = "(void *)(uintptr_t)source, dst, sst" if verb == "iput" else "dest, sst, dst"
    body = f"smai_{verb}({remote(at)}, &(struct smai_stride){{{{ {strides}, nelems, {{n}} }}}});"
    group = "shmem_" + verb[1:]
    text = "Elements dst apart in dest and sst apart in source, both at least 1."
    add(group, f"shmem_{{C}}{{T}}_{verb}", "void", "{t} *dest, const {t} *source, ptrdiff_t dst, ptrdiff_t sst, "
        "size_t nelems, int pe", body, text, RMA, True, (f"shmem_{verb}", 0))
    add(group, f"shmem_{{C}}{verb}{{T}}", "void", "void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, "
        "size_t nelems, int pe", body, text, SIZES, True)

# ---- signals ----

for nbi in ["", "_nbi"]:
    params = "size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe"
    body = (f"struct smai_remote r = {remote('dest')}; smai_put_signal(r, source, smai_bytes(r, nelems, {{n}}), "
            f"(struct smai_signal){{{{ sig_addr, signal, sig_op }}}}, {'true' if nbi else 'false'});")
    text = "A put, then the signal." + (" Complete after a quiet." if nbi else "")
    add("shmem_put_signal", f"shmem_{{C}}{{T}}_put_signal{nbi}", "void", f"{{t}} *dest, const {{t}} *source, {params}", body,
        text, RMA, True, (f"shmem_put_signal{nbi}", 0))
    add("shmem_put_signal", f"shmem_{{C}}put{{T}}_signal{nbi}", "void", f"void *dest, const void *source, {params}", body,
        text, SIZES, True)
    add("shmem_put_signal", f"shmem_{{C}}putmem_signal{nbi}", "void", f"void *dest, const void *source, {params}",
        body.replace("{n}", "1"), text, None, True)
add("shmem_put_signal", "shmem_signal_fetch", "uint64_t", "const uint64_t *sig_addr",
    "return atomic_load_explicit((const _Atomic uint64_t *)sig_addr, memory_order_acquire);",
    "The signal word of this PE.")
add("shmem_put_signal", "shmem_signal_wait_until", "uint64_t", "uint64_t *sig_addr, int cmp, uint64_t cmp_value",
    "return wait_for_ulong(sig_addr, cmp, cmp_value, {CALL});", "Waits for it; its value.")

# ---- atomics ----

OPS = [("fetch", "", ""), ("set", "value", ""), ("compare_swap", "cond, value", "CSWAP"), ("swap", "value", "SWAP"),
       ("fetch_inc", "", "ADD"), ("inc", "", "ADD"), ("fetch_add", "value", "ADD"), ("add", "value", "ADD"),
       ("fetch_and", "value", "AND"), ("and", "value", "AND"), ("fetch_or", "value", "OR"), ("or", "value", "OR"),
       ("fetch_xor", "value", "XOR"), ("xor", "value", "XOR")]
AMO_DOC = {"fetch": "The word.", "set": "Sets the word.", "compare_swap": "Sets the word if it is cond; the one before.",
           "swap": "Sets the word; the one before."}


def amo(call, op, args, emu, types, old=False, nbi=False):
    names = [a for a in args.split(", ") if a]
    fetches = op == "fetch" or op.startswith("fetch_") or "swap" in op
    at = "source" if op == "fetch" else "dest"
    params = ("{t} *fetch, " if nbi else "") + ("const " if op == "fetch" else "") + "{t} *" + at
    params += "".join(f", {{t}} {n}" for n in names) + ", int pe"
    operands = [f"SMAI_BITS({{t}}, {n})" for n in names] or ["SMAI_BITS({t}, 1)"]
    atomic = (f"(struct smai_atomic){{{{ EMU_AMO_{emu}, {'true' if fetches else 'false'}, {{n}}, {operands[0]}, "
              f"{operands[1] if len(operands) > 1 else '0'} }}}}")
    if op == "set":
        body = f"smai_set({remote(at)}, {{n}}, {operands[0]});"
    elif nbi:
        atomic = atomic if op != "fetch" else "(struct smai_atomic){{ EMU_AMO_ADD, true, {n}, 0, 0 }}"
        body = f"smai_amo_nbi({remote(at)}, {atomic}, fetch);"
    elif op == "fetch":
        body = f"return SMAI_VALUE({{t}}, smai_fetch({remote(at)}, {{n}}));"
    elif fetches:
        body = f"return SMAI_VALUE({{t}}, smai_amo({remote(at)}, {atomic}));"
    else:
        body = f"(void)smai_amo({remote(at)}, {atomic});"
    generic = call.replace("{C}", "").replace("{T}_", "")
    doc = AMO_DOC.get(op, f"Atomic {op.split('_')[-1]}" + ("; the word before." if fetches else "."))
    add("shmem_atomic", call, "{t}" if fetches and not nbi else "void", params, body, doc, types, not old,
        None if old else (generic, 1 if nbi else 0), old)


for op, args, emu in OPS:
    bitwise = op.split("_")[-1] in ["and", "or", "xor"]
    types = AMO_BITWISE if bitwise else AMO_EXTENDED if op in ["fetch", "set", "swap"] else AMO
    amo(f"shmem_{{C}}{{T}}_atomic_{op}", op, args, emu, types)
for op, args, emu in OPS:
    bitwise = op.split("_")[-1] in ["and", "or", "xor"]
    types = AMO_BITWISE if bitwise else AMO_EXTENDED if op in ["fetch", "swap"] else AMO
    if op == "fetch" or op.startswith("fetch_") or "swap" in op:
        amo(f"shmem_{{C}}{{T}}_atomic_{op}_nbi", op, args, emu, types, nbi=True)
for old, op, args, emu, types in [("cswap", "compare_swap", "cond, value", "CSWAP", OLD_INTEGER),
                                  ("swap", "swap", "value", "SWAP", OLD_VALUE),
                                  ("finc", "fetch_inc", "", "ADD", OLD_INTEGER), ("inc", "inc", "", "ADD", OLD_INTEGER),
                                  ("fadd", "fetch_add", "value", "ADD", OLD_INTEGER),
                                  ("add", "add", "value", "ADD", OLD_INTEGER),
                                  ("fetch", "fetch", "", "", OLD_VALUE), ("set", "set", "value", "", OLD_VALUE)]:
    amo(f"shmem_{{T}}_{old}", op, args, emu, types, old=True)
    OLD_GENERICS[f"shmem_{old}"] = f"shmem_atomic_{op}"
add("shmem_atomic", "shmem_swap", "long", "long *dest, long value, int pe", "return pshmem_long_swap(dest, value, pe);",
    "shmem_long_swap(); in C11 a selection by type.", old=True)

# ---- collectives ----

BLOCKS = "&(struct smai_blocks){{ {CALL}, dest, source, nelems, {n}, 0, 0 }}"
STRIDED = "&(struct smai_blocks){{ {CALL}, dest, source, nelems, {n}, dst, sst }}"
TEAM = "&smai_team_must(team, {CALL})->group"
SET = "smai_active_set(PE_start, logPE_stride, PE_size, {CALL})"
SET_PARAMS = "int PE_start, int logPE_stride, int PE_size, long *pSync"


def collective(name, more, call, doc):
    """Team forms of a type and of bytes, and the forms of active sets with 32 and 64 bits."""
    params = "shmem_team_t team, {t} *dest, const {t} *source, " + more
    body = f"smai_{name}({TEAM}, {call}); return 0;"
    add("shmem_broadcast", f"shmem_{{T}}_{name}", "int", params, body, doc, RMA, False, (f"shmem_{name}", 1))
    add("shmem_broadcast", f"shmem_{name}mem", "int", params.replace("{t}", "void"), body.replace("{n}", "1"),
        doc + " Bytes.")
    add("shmem_broadcast", f"shmem_{name}{{T}}", "void", f"void *dest, const void *source, {more}, {SET_PARAMS}",
        f"(void)pSync; smai_{name}({SET}, {call.replace(', true', ', false')});", doc + " Of an active set.", WORDS, old=True)


collective("broadcast", "size_t nelems, int PE_root", BLOCKS + ", PE_root, true",
           "The root's source into dest of all; the root's own only in the team forms. 0.")
collective("collect", "size_t nelems", BLOCKS, "Blocks of any sizes behind each other, in the order of PEs. 0.")
collective("fcollect", "size_t nelems", BLOCKS, "Blocks of one size behind each other, in the order of PEs. 0.")
collective("alltoall", "size_t nelems", BLOCKS, "The i-th block to PE i, as the block of the sender. 0.")
collective("alltoalls", "ptrdiff_t dst, ptrdiff_t sst, size_t nelems", STRIDED,
           "The same with elements dst and sst apart. 0.")

for op, types, old_types in [("and", REDUCE_BITWISE, OLD_BITWISE), ("or", REDUCE_BITWISE, OLD_BITWISE),
                             ("xor", REDUCE_BITWISE, OLD_BITWISE), ("max", REDUCE_ORDER, OLD_ORDER),
                             ("min", REDUCE_ORDER, OLD_ORDER), ("sum", REDUCE_SUM, OLD_SUM),
                             ("prod", REDUCE_SUM, OLD_SUM)]:
    blocks = "&(struct smai_blocks){{ {CALL}, dest, source, nreduce, {n}, 0, 0 }}, &op_" + op + "_{U}"
    add("shmem_reduce", f"shmem_{{T}}_{op}_reduce", "int", "shmem_team_t team, {t} *dest, const {t} *source, size_t nreduce",
        f"smai_reduce({TEAM}, {blocks}); return 0;", f"Element by element: {op}. 0.", types, False,
        (f"shmem_{op}_reduce", 1))
    blocks = blocks.replace("nreduce", "(size_t)nreduce")
    add("shmem_reduce", f"shmem_{{T}}_{op}_to_all", "void", "{t} *dest, const {t} *source, int nreduce, int PE_start, "
        "int logPE_stride, int PE_size, {t} *pWrk, long *pSync",
        f"(void)pWrk; (void)pSync; smai_reduce({SET}, {blocks});", f"The same of an active set: {op}.", old_types, old=True)

# ---- barriers, ordering ----

add("shmem_barrier", "shmem_barrier_all", "void", "void", "smai_barrier_all();", "Of all PEs.")
add("shmem_barrier", "shmem_sync_all", "void", "void", "smai_sync_all();", "Of all PEs.")
add("shmem_barrier", "shmem_team_sync", "int", "shmem_team_t team", "return smai_team_sync(team);", "Of a team. 0.")
add("shmem_barrier", "shmem_barrier", "void", SET_PARAMS,
    "smai_barrier(PE_start, logPE_stride, PE_size, pSync);", "Of an active set.", old=True)
add("shmem_barrier", "shmem_sync", "void", SET_PARAMS, "smai_sync_set(PE_start, logPE_stride, PE_size, pSync);",
    "Of an active set; in C11 also of a team.", old=True)
add("shmem_barrier", "shmem_fence", "void", "void", "smai_order({CALL});",
    "Operations before it arrive before those behind it, PE by PE.")
add("shmem_barrier", "shmem_quiet", "void", "void", "smai_settle({CALL});", "Operations before it are complete.")
add("shmem_barrier", "shmem_ctx_fence", "void", "shmem_ctx_t ctx", "smai_ctx_fence(ctx);", "The same of a context.")
add("shmem_barrier", "shmem_ctx_quiet", "void", "shmem_ctx_t ctx", "smai_ctx_quiet(ctx);", "The same of a context.")

# ---- waiting, testing ----

CONDITION = ("(struct smai_condition){{{{ holds_{{U}}, {{CALL}}, ivars, {values}, nelems, {{n}}, status, cmp, {vector} }}}}")
add("shmem_wait_until", "shmem_{T}_wait_until", "void", "{t} *ivar, int cmp, {t} cmp_value",
    "(void)wait_for_{U}(ivar, cmp, cmp_value, {CALL});", "Waits until the comparison holds.", P2P, False,
    ("shmem_wait_until", 0))
add("shmem_wait_until", "shmem_{T}_test", "int", "{t} *ivar, int cmp, {t} cmp_value",
    "smai_check_wait({CALL}, ivar, {n}, cmp); if (holds_{U}(ivar, cmp, &cmp_value)) return 1; smai_wait_politely(); "
    "return 0;", "1 if it holds.", P2P, False, ("shmem_test", 0))
for kind in ["wait_until", "test"]:
    how = "wait" if kind == "wait_until" else "test"
    for which, returns, indices, doc in [("all", "void" if how == "wait" else "int", "", "all hold"),
                                         ("any", "size_t", "", "one holds: its index; SIZE_MAX: none is looked at"),
                                         ("some", "size_t", "size_t *indices, ", "some hold: their indices and number")]:
        for vector in ["", "_vector"]:
            value = "{t} *cmp_values" if vector else "{t} cmp_value"
            condition = CONDITION.format(values="cmp_values" if vector else "&cmp_value",
                                         vector="true" if vector else "false")
            call = f"smai_{how}_{which}(&c{', indices' if indices else ''})"
            polite = ""
            if how == "test":
                empty = {"all": "!r", "any": "r == SIZE_MAX", "some": "r == 0"}[which]
                polite = f"{returns} r = {call}; if ({empty}) smai_wait_politely(); return r;"
            body = (f"const struct smai_condition c = {condition}; "
                    "smai_check_wait({CALL}, ivars, nelems * {n}, cmp); " +
                    (polite or ("" if returns == "void" else "return ") + call + ";"))
            add("shmem_wait_until", f"shmem_{{T}}_{kind}_{which}{vector}", returns, f"{{t}} *ivars, size_t nelems, {indices}"
                f"const int *status, int cmp, {value}", body,
                ("Waits until " if how == "wait" else "Whether ") + doc +
                (", each with its own value." if vector else "."), P2P, False, (f"shmem_{kind}_{which}{vector}", 0))
add("shmem_wait_until", "shmem_{T}_wait", "void", "{t} *ivar, {t} cmp_value",
    "(void)wait_for_{U}(ivar, SHMEM_CMP_NE, cmp_value, {CALL});", "Waits until it differs.", OLD_WAIT, old=True)
add("shmem_wait_until", "shmem_wait", "void", "long *ivar, long cmp_value",
    "(void)wait_for_long(ivar, SHMEM_CMP_NE, cmp_value, {CALL});", "shmem_long_wait().", old=True)
add("shmem_wait_until", "shmem_wait_until", "void", "long *ivar, int cmp, long cmp_value",
    "(void)wait_for_long(ivar, cmp, cmp_value, {CALL});", "shmem_long_wait_until(); in C11 a selection by type.", old=True)

# ---- locks, caches ----

add("shmem_lock", "shmem_set_lock", "void", "long *lock", "smai_set_lock(lock);", "Waits for the lock and takes it.")
add("shmem_lock", "shmem_test_lock", "int", "long *lock", "return smai_test_lock(lock);", "Takes it if it is free: 0; else 1.")
add("shmem_lock", "shmem_clear_lock", "void", "long *lock", "smai_clear_lock(lock);",
    "Completes the caller's operations and gives it back.")
for name in ["clear_cache_inv", "set_cache_inv", "udcflush"]:
    add("shmem_cache", f"shmem_{name}", "void", "void", ";", "Nothing.", old=True)
for name in ["clear_cache_line_inv", "set_cache_line_inv", "udcflush_line"]:
    add("shmem_cache", f"shmem_{name}", "void", "void *dest", "(void)dest;", "Nothing.", old=True)
