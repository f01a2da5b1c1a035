/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic-sim-mpi: `emunic sim traffic --mpi`, as one of the processes that an mpirun started. The only program of
 * emunic's own that needs MPI.
 *
 * The processes talk as the simulator asks them to (struct emu_sim_world): per window a message to and from each
 * process that has links here, and one reduction of eight bytes. A message says its length first. Its first EAGER_BYTES
 * are waited for beforehand; what is beyond comes in a second message, when its length is known.
 *
 * Words: what all processes have to say alike, number 0 says. Until all have compared how far they came, the others
 * keep what they say in memory; then the first of those that came worst says why.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "emunic-config.h"
#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/sim_world.h"
#include "emunic/fabric/random.h"

#define EAGER_BYTES ((size_t)64 << 10)
#define REDUCE_MAX  ((size_t)1 << 20) /* numbers at a time */
#define SPIN_NS     100000            /* as long as a window of a small machine */
#define NAP_NS      20000
#define MAIL_TAG    1
#define REST_TAG    2

struct post {
    MPI_Request *requests; /* owned; two for each process, and one */
};

/* ---- what the simulator asks for ---- */

static _Noreturn void give_up(const char *what)
{
    (void)emu_cli_fail("sim", "--mpi: %s", what);
    MPI_Abort(MPI_COMM_WORLD, EMU_EXIT_FAILED);
    abort();
}

static uint64_t length_of(const void *mail)
{
    uint64_t bytes;

    memcpy(&bytes, mail, sizeof(bytes));
    return bytes;
}

static int eager(uint64_t bytes)
{
    return (int)(bytes < EAGER_BYTES ? bytes : EAGER_BYTES);
}

/* Room for so many bytes that come. */
static void grow_in(struct emu_sim_mail *mail, size_t bytes)
{
    void *in;

    if (bytes <= mail->in_room)
        return;
    bytes += bytes / 4;
    in = realloc(mail->in, bytes);
    if (!in)
        give_up("out of memory");
    mail->in = in;
    mail->in_room = bytes;
}

static void start_mail(struct emu_sim_mail *mail, MPI_Request requests[2])
{
    grow_in(mail, EAGER_BYTES);
    MPI_Irecv(mail->in, (int)EAGER_BYTES, MPI_BYTE, (int)mail->rank, MAIL_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(mail->out, eager(length_of(mail->out)), MPI_BYTE, (int)mail->rank, MAIL_TAG, MPI_COMM_WORLD,
              &requests[1]);
}

/* What is beyond the first bytes. */
static void start_rest(struct emu_sim_mail *mail, MPI_Request requests[2])
{
    uint64_t in_bytes = length_of(mail->in);
    uint64_t out_bytes = length_of(mail->out);

    if (in_bytes > INT32_MAX || out_bytes > INT32_MAX)
        give_up("a window's packets are more than a message can be; use more processes");
    grow_in(mail, in_bytes);
    if (in_bytes > EAGER_BYTES)
        MPI_Irecv((char *)mail->in + EAGER_BYTES, (int)(in_bytes - EAGER_BYTES), MPI_BYTE, (int)mail->rank, REST_TAG,
                  MPI_COMM_WORLD, &requests[0]);
    if (out_bytes > EAGER_BYTES)
        MPI_Isend((char *)mail->out + EAGER_BYTES, (int)(out_bytes - EAGER_BYTES), MPI_BYTE, (int)mail->rank, REST_TAG,
                  MPI_COMM_WORLD, &requests[1]);
}

/* MPI itself would keep the processor that the others may wait for. Who has slept gets it sooner, too. */
static void wait_for_all(int n, MPI_Request *requests)
{
    const struct timespec nap = { .tv_nsec = NAP_NS };
    uint64_t start_ns = emu_clock_ns();
    int is_done = 0;

    for (;;) {
        MPI_Testall(n, requests, &is_done, MPI_STATUSES_IGNORE);
        if (is_done)
            return;
        if (emu_clock_ns() - start_ns > SPIN_NS)
            nanosleep(&nap, NULL);
    }
}

static void exchange(void *ctx, struct emu_sim_mail *const *mails, uint32_t n_mails, uint64_t *least)
{
    struct post *post = ctx;
    int n = 2 * (int)n_mails;

    for (uint32_t i = 0; i < n_mails; i++)
        start_mail(mails[i], &post->requests[2 * i]);
    MPI_Iallreduce(MPI_IN_PLACE, least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD, &post->requests[n]);
    wait_for_all(n + 1, post->requests);
    for (uint32_t i = 0; i < n_mails; i++)
        start_rest(mails[i], &post->requests[2 * i]); /* the others are null requests now */
    wait_for_all(n, post->requests);
}

static void reduce(void *ctx, enum emu_sim_reduction how, uint64_t *values, size_t n)
{
    MPI_Op op = how == EMU_SIM_SUM ? MPI_SUM : how == EMU_SIM_LEAST ? MPI_MIN : MPI_MAX;
    struct post *post = ctx;

    for (size_t i = 0; i < n; i += REDUCE_MAX) {
        MPI_Iallreduce(MPI_IN_PLACE, values + i, (int)(n - i < REDUCE_MAX ? n - i : REDUCE_MAX), MPI_UINT64_T, op,
                       MPI_COMM_WORLD, &post->requests[0]);
        wait_for_all(1, post->requests);
    }
}

/* ---- words ---- */

/* Of the processes but the first. */
struct held_words {
    int own_stderr; /* -1: words are not held */
    int memory;
};

static void hold_words(struct held_words *held, int rank)
{
    *held = (struct held_words){ .own_stderr = -1, .memory = -1 };
    if (rank == 0)
        return;
    held->memory = memfd_create("words", MFD_CLOEXEC);
    held->own_stderr = dup(STDERR_FILENO);
    if (held->memory < 0 || held->own_stderr < 0 || dup2(held->memory, STDERR_FILENO) < 0)
        held->own_stderr = -1;
    if (!freopen("/dev/null", "w", stdout))
        give_up("/dev/null cannot be written");
}

/* From here on words go out. Those that were held: if nobody says the same. */
static void release_words(struct held_words *held, bool is_said)
{
    char text[4096];
    ssize_t n;

    if (held->own_stderr < 0)
        return;
    fflush(stderr);
    dup2(held->own_stderr, STDERR_FILENO);
    close(held->own_stderr);
    held->own_stderr = -1;
    n = is_said ? pread(held->memory, text, sizeof(text), 0) : 0;
    if (n > 0)
        fwrite(text, 1, (size_t)n, stderr);
    close(held->memory);
}

static struct held_words words;

/* The worst status of all. The lowest process with it says why. */
static int agree(const struct emu_sim_world *world, int status)
{
    uint64_t worst = (uint64_t)status;
    uint64_t speaker;

    reduce(world->ctx, EMU_SIM_MOST, &worst, 1);
    speaker = (uint64_t)status == worst ? world->rank : world->size;
    reduce(world->ctx, EMU_SIM_LEAST, &speaker, 1);
    release_words(&words, worst != EMU_EXIT_DONE && speaker == world->rank && world->rank != 0);
    return (int)worst;
}

/* ---- start and end ---- */

static uint64_t hash_of(int argc, char **argv)
{
    uint64_t hash = (uint64_t)argc;

    for (const char *c = EMU_VERSION; *c != '\0'; c++)
        hash = emu_random_mix(hash ^ (uint8_t)*c);
    for (int i = 1; i < argc; i++) {
        for (const char *c = argv[i]; *c != '\0'; c++)
            hash = emu_random_mix(hash ^ (uint8_t)*c) + hash;
        hash = emu_random_mix(hash);
    }
    return hash;
}

int main(int argc, char **argv)
{
    int given, rank, size;
    int status;
    struct post post;
    struct emu_cli_world world;

    emu_log_init("emunic-sim-mpi", EMU_LOG_WARN);
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
        return emu_cli_fail("sim", "--mpi: MPI does not start");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (given < MPI_THREAD_FUNNELED)
        give_up("this MPI permits no threads");
    prctl(PR_SET_TIMERSLACK, 1000); /* naps are short */
    hold_words(&words, rank);
    post.requests = malloc((2 * (size_t)size + 1) * sizeof(*post.requests));
    if (!post.requests)
        give_up("out of memory");
    for (int i = 0; i <= 2 * size; i++)
        post.requests[i] = MPI_REQUEST_NULL;
    world = (struct emu_cli_world){
        .calls = { .ctx = &post,
                   .rank = (uint32_t)rank,
                   .size = (uint32_t)size,
                   .exchange = exchange,
                   .reduce = reduce },
        .agree = agree,
        .arguments_hash = hash_of(argc, argv),
    };
    status = emu_cli_sim_traffic_of_many(argc, argv, &world);
    release_words(&words, false);
    fflush(NULL);
    MPI_Finalize();
    free(post.requests);
    return status;
}
