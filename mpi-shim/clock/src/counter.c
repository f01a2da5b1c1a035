/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time-stamp counter in virtual time.
 *
 * The kernel makes rdtsc and rdtscp a fault (prctl(PR_SET_TSC)), for a thread and for those that it creates. A handler
 * of SIGSEGV looks at the instruction, puts the value into its registers and goes on behind it. The virtual counter
 * counts nanoseconds (1 GHz). It goes on from the host's, and a read costs what a question for the time costs. libc,
 * the loader, the kernel's page of system calls and the runtime's libraries get the host's counter: there the thread
 * lets itself read it for once.
 *
 * Threads are trapped only where some code of the process has the instruction (counter_code.c). Each switch of a core
 * between a thread that is trapped and one that is not writes a control register, and in some virtual machines that
 * takes as long as the rest of a turn. A thread that loads code is trapped until its next request, at which the code is
 * looked at.
 *
 * All other faults are the program's. Its own handler of SIGSEGV is kept here and called with its mask and flags;
 * sigaction() and its like see it as if ours were not there. SIGSEGV is never blocked, because the kernel ends a
 * process that faults then; so a handler of the program that faults itself is called again.
 *
 * A started program would inherit the trap without the handler. So fork() takes it away in the child, and the functions
 * that execute or spawn a program take it away around their work.
 *
 * Where the kernel or the processor does not trap, nothing of this happens and the counter is the host's (`emunic
 * doctor` tells).
 */
#include "mpi-shim/clock/src/counter.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "emunic/client/virtual_clock.h"
#include "mpi-shim/clock/src/counter_code.h"
#include "mpi-shim/clock/src/program_clock.h"

#define HOST_RANGES_MAX 16
#define VDSO_BYTES      65536u
#define COUNTER_STEP    1000000000u /* the counter begins at a multiple, so that differences are the same in each run */

#define LOOKS_MAX 16 /* at loaded code: each takes milliseconds */

static atomic_bool is_begun;
static _Thread_local bool is_trapped;

static atomic_bool has_reads;              /* some code reads the counter, or nobody can tell */
static atomic_uint n_looks;                /* at loaded code */
static atomic_uint n_loads;                /* that nobody has looked at yet, */
static _Thread_local unsigned n_own_loads; /* and those of this thread */

static int (*next_sigaction(void))(int, const struct sigaction *, struct sigaction *)
{
    static void *found;

    return (int (*)(int, const struct sigaction *, struct sigaction *))program_clock_next(&found, "sigaction");
}

#ifdef __x86_64__

/* ---- whose instruction ---- */

static struct {
    uintptr_t first;
    uintptr_t end;
} host_ranges[HOST_RANGES_MAX];
static size_t n_host_ranges;

static void add_host_range(uintptr_t first, uintptr_t end)
{
    if (n_host_ranges < HOST_RANGES_MAX) {
        host_ranges[n_host_ranges].first = first;
        host_ranges[n_host_ranges++].end = end;
    }
}

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    static const char *const names[] = { "libc.so.6", "ld-linux-x86-64.so.2" };
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size;
    (void)unused;
    for (size_t i = 0; slash && i < sizeof(names) / sizeof(names[0]); i++) {
        for (int j = 0; strcmp(slash + 1, names[i]) == 0 && j < info->dlpi_phnum; j++) {
            const ElfW(Phdr) *part = &info->dlpi_phdr[j];

            if (part->p_type == PT_LOAD && (part->p_flags & PF_X))
                add_host_range(info->dlpi_addr + part->p_vaddr, info->dlpi_addr + part->p_vaddr + part->p_memsz);
        }
    }
    return 0;
}

static void find_host_ranges(void)
{
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);

    if (vdso != 0)
        add_host_range(vdso, vdso + VDSO_BYTES);
    dl_iterate_phdr(note_library, NULL);
}

bool clock_counter_is_of_host(uintptr_t at)
{
    for (size_t i = 0; i < n_host_ranges; i++) {
        if (at >= host_ranges[i].first && at < host_ranges[i].end)
            return true;
    }
    return false;
}

/* ---- the instruction ---- */

enum instruction { OTHER = 0, RDTSC = 2, RDTSCP = 3 }; /* bytes of it */

/* The kernel reads it, as the address may be no memory. False: it is none. */
static bool read_byte(uintptr_t at, uint8_t *byte_out)
{
    const struct iovec here = { byte_out, 1 }, there = { (void *)at, 1 };

    return syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) == 1;
}

/* Byte by byte: behind the instruction there may be nothing. */
static bool is_instruction(uintptr_t at, const uint8_t *bytes, size_t n)
{
    uint8_t byte;

    for (size_t i = 0; i < n; i++) {
        if (!read_byte(at + i, &byte) || byte != bytes[i])
            return false;
    }
    return true;
}

/* One that has begun to execute is readable; a sandbox may not permit the call above. */
static bool is_executed(uintptr_t at, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (((const uint8_t *)at)[i] != bytes[i])
            return false;
    }
    return true;
}

static enum instruction instruction_at(uintptr_t at, bool has_begun)
{
    static const uint8_t rdtsc[] = { 0x0f, 0x31 }, rdtscp[] = { 0x0f, 0x01, 0xf9 };
    bool (*is)(uintptr_t, const uint8_t *, size_t) = has_begun ? is_executed : is_instruction;

    if (is(at, rdtsc, sizeof(rdtsc)))
        return RDTSC;
    return is(at, rdtscp, sizeof(rdtscp)) ? RDTSCP : OTHER;
}

static uint64_t host_counter(void)
{
    bool was_trapped = clock_counter_release();
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    clock_counter_trap(was_trapped);
    return (uint64_t)high << 32 | low;
}

static uint64_t counter_base; /* at virtual time 0 */

static uint64_t counter_for(uintptr_t at)
{
    uint64_t ns;

    if (clock_counter_is_of_host(at) || program_clock_kind((const void *)at) < PROGRAM_CLOCK_READ)
        return host_counter();
    ns = program_clock_elapsed_ns();
    program_clock_charge();
    return counter_base + ns;
}

/* IA32_TSC_AUX as Linux sets it: node and processor. */
static uint32_t processor(void)
{
    unsigned cpu = 0, node = 0;

    syscall(SYS_getcpu, &cpu, &node, NULL);
    return node << 12 | cpu;
}

/* False: the fault is another one. */
static bool emulate(const siginfo_t *info, ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    enum instruction instruction;
    uint64_t value;

    /* The trap tells no address; where memory cannot be executed it is the instruction's. */
    if (info->si_code <= 0 || (info->si_code != SI_KERNEL && (uintptr_t)info->si_addr != at))
        return false;
    instruction = instruction_at(at, info->si_code == SI_KERNEL);
    if (instruction == OTHER)
        return false;
    value = counter_for(at);
    registers[REG_RAX] = (greg_t)(uint32_t)value;
    registers[REG_RDX] = (greg_t)(value >> 32);
    if (instruction == RDTSCP)
        registers[REG_RCX] = (greg_t)processor();
    registers[REG_RIP] += instruction;
    return true;
}

/* ---- the program's handler ---- */

static struct sigaction program_action;

static bool is_default(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

/* What the kernel does where nobody handles it: a fault comes again, and a signal that was sent is sent again. */
static void end_by_signal(int number, const siginfo_t *info)
{
    const struct sigaction none = { .sa_handler = SIG_DFL };

    if (info->si_code <= 0 && program_action.sa_handler == SIG_IGN)
        return;
    next_sigaction()(number, &none, NULL);
    if (info->si_code <= 0)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    struct sigaction action = program_action;
    sigset_t mask;

    if (is_default(&action)) {
        end_by_signal(number, info);
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND)
        program_action = (struct sigaction){ .sa_handler = SIG_DFL };
    mask = action.sa_mask;
    sigdelset(&mask, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &mask, NULL); /* the end of our handler takes it back */
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int error = errno;

    if (!emulate(info, context))
        pass_on(number, info, context);
    errno = error;
}

/* The stack is the one that the program has chosen for its own. */
static void install(void)
{
    struct sigaction action = { .sa_sigaction = on_fault };

    action.sa_flags = SA_SIGINFO | SA_NODEFER | (program_action.sa_flags & (SA_ONSTACK | SA_RESTART));
    sigemptyset(&action.sa_mask);
    next_sigaction()(SIGSEGV, &action, NULL);
}

/* ---- traps of threads ---- */

static void release_child(void)
{
    clock_counter_release();
    atomic_store(&is_begun, false);
    next_sigaction()(SIGSEGV, &program_action, NULL);
}

static void unblock(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void clock_counter_begin(void)
{
    int now;

    if (prctl(PR_GET_TSC, &now) < 0 || now != PR_TSC_ENABLE)
        return;
    find_host_ranges();
    counter_base = (host_counter() / COUNTER_STEP + 1) * COUNTER_STEP;
    next_sigaction()(SIGSEGV, NULL, &program_action);
    pthread_atfork(NULL, NULL, release_child);
    install();
    atomic_store(&has_reads, clock_code_reads_counter());
    atomic_store(&is_begun, true);
}

/* Code that this thread has loaded. */
static void look_at_loads(void)
{
    if (!atomic_load_explicit(&has_reads, memory_order_relaxed) &&
        (atomic_fetch_add(&n_looks, 1) >= LOOKS_MAX || clock_code_reads_counter()))
        atomic_store(&has_reads, true);
    atomic_fetch_sub(&n_loads, n_own_loads);
    n_own_loads = 0;
}

static void set_trap(bool traps)
{
    if (traps == is_trapped)
        return;
    unblock();
    is_trapped = traps;
    prctl(PR_SET_TSC, traps ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
}

void clock_counter_trap_thread(void)
{
    if (!atomic_load_explicit(&is_begun, memory_order_relaxed))
        return;
    if (n_own_loads > 0)
        look_at_loads();
    set_trap(atomic_load_explicit(&has_reads, memory_order_relaxed) ||
             atomic_load_explicit(&n_loads, memory_order_relaxed) > 0);
}

void clock_counter_note_load(void)
{
    if (!atomic_load_explicit(&is_begun, memory_order_relaxed))
        return;
    atomic_fetch_add(&n_loads, 1);
    n_own_loads++;
    if (emu_vclock_has_own())
        set_trap(true);
}

void clock_counter_note_code(void)
{
    if (!atomic_load_explicit(&is_begun, memory_order_relaxed))
        return;
    atomic_store(&has_reads, true);
    if (emu_vclock_has_own())
        set_trap(true);
}

bool clock_counter_release(void)
{
    int now = PR_TSC_ENABLE;

    if (!atomic_load_explicit(&is_begun, memory_order_relaxed) || prctl(PR_GET_TSC, &now) < 0 || now != PR_TSC_SIGSEGV)
        return false;
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    return true;
}

void clock_counter_trap(bool was_trapped)
{
    if (was_trapped)
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

/* ---- what the program sees of handlers ---- */

static int replace(const struct sigaction *action, struct sigaction *old)
{
    struct sigaction before = program_action;

    if (action) {
        program_action = *action;
        install();
    }
    if (old)
        *old = before;
    return 0;
}

#else /* no such counter */

void clock_counter_begin(void)
{
}

void clock_counter_trap_thread(void)
{
}

void clock_counter_note_load(void)
{
}

void clock_counter_note_code(void)
{
}

bool clock_counter_release(void)
{
    return false;
}

void clock_counter_trap(bool was_trapped)
{
    (void)was_trapped;
}

static int replace(const struct sigaction *action, struct sigaction *old)
{
    return next_sigaction()(SIGSEGV, action, old);
}

#endif

static int set_action(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction without;

    if (!atomic_load_explicit(&is_begun, memory_order_acquire))
        return next_sigaction()(number, action, old);
    if (number == SIGSEGV)
        return replace(action, old);
    if (action) {
        without = *action;
        sigdelset(&without.sa_mask, SIGSEGV);
        action = &without;
    }
    return next_sigaction()(number, action, old);
}

CLOCK_EXPORT int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    return set_action(number, action, old);
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, old;

    sigemptyset(&action.sa_mask);
    return set_action(number, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* Of other signals it is libc's, which knows of siginterrupt(). */
static sighandler_t set_signal(const char *name, void **found, int number, sighandler_t handler, int flags)
{
    __typeof__(signal) *next = (__typeof__(signal) *)program_clock_next(found, name);

    if (number != SIGSEGV || !atomic_load_explicit(&is_begun, memory_order_acquire))
        return next(number, handler);
    return set_handler(number, handler, flags);
}

CLOCK_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    static void *found;

    return set_signal("signal", &found, number, handler, SA_RESTART);
}

CLOCK_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    static void *found;

    return set_signal("__sysv_signal", &found, number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

CLOCK_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
    static void *found;

    return set_signal("sysv_signal", &found, number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

/* A set without SIGSEGV, where it would be blocked. */
static const sigset_t *without_fault(int how, const sigset_t *set, sigset_t *room)
{
    if (!set || how == SIG_UNBLOCK || !atomic_load_explicit(&is_begun, memory_order_acquire))
        return set;
    *room = *set;
    sigdelset(room, SIGSEGV);
    return room;
}

CLOCK_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    static void *found;
    __typeof__(sigprocmask) *next = (__typeof__(sigprocmask) *)program_clock_next(&found, "sigprocmask");
    sigset_t room;

    return next(how, without_fault(how, set, &room), old);
}

CLOCK_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    static void *found;
    __typeof__(pthread_sigmask) *next = (__typeof__(pthread_sigmask) *)program_clock_next(&found, "pthread_sigmask");
    sigset_t room;

    return next(how, without_fault(how, set, &room), old);
}
