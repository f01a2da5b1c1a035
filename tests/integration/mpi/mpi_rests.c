/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that find nothing, on one core for all.
 *
 *   mpi_rests           looks: MPI_Test, MPI_Iprobe and their like; probes of messages that are there; calls of a
 *                       window that need nobody else
 *   mpi_rests threads   sends beside a thread that waits
 *   mpi_rests credits   one rank sends while the other finds its first message again and again; over portals
 *
 * Prints "ok NAME" for each case, from rank 0. Who waits rests, because others want the core. A program that looks
 * between pieces of work must not rest for it, and a thread that rests must not hold up others. The kernel counts a
 * yield as no sleep.
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LOOKS      1000
#define STREAM     4000 /* more than may be under way */
#define PATIENCE_S 100
#define SENDS      50
#define WORK_NS    3000000 /* after so long a thread that waits rests */
#define TAG_NEVER  1
#define TAG_TURN   2
#define TAG_STREAM 3
#define TAG_END    4
#define TAG_HERE   5

typedef int look_fn(MPI_Request *requests);

static int rank;
static int failed;
static MPI_Win window;

static void check(int is_right, const char *what)
{
    if (is_right)
        return;
    failed = 1;
    fprintf(stderr, "rank %d: %s\n", rank, what);
}

static void end_case(const char *name)
{
    int any;

    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        MPI_Finalize();
        exit(1);
    }
    if (rank == 0)
        printf("ok %s\n", name);
}

/* Before MPI_Init: all ranks and their threads get one core, which no other setting lets MPI give away. */
static void crowd(void)
{
    cpu_set_t set, one;

    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (int i = 0; i < CPU_SETSIZE; i++) {
            if (!CPU_ISSET(i, &set))
                continue;
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof(one), &one);
            break;
        }
    }
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
}

static long count_sleeps(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* ---- looks: what has come, which is nothing ---- */

static int look_test(MPI_Request *requests)
{
    int flag;

    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int look_testany(MPI_Request *requests)
{
    int flag, index;

    MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int look_testall(MPI_Request *requests)
{
    int flag;

    MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    return flag;
}

static int look_testsome(MPI_Request *requests)
{
    int n, indices[2];

    MPI_Testsome(2, requests, &n, indices, MPI_STATUSES_IGNORE);
    return n;
}

static int look_iprobe(MPI_Request *requests)
{
    int flag;

    (void)requests;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int look_improbe(MPI_Request *requests)
{
    MPI_Message message;
    int flag;

    (void)requests;
    MPI_Improbe(MPI_ANY_SOURCE, TAG_NEVER, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    return flag;
}

static int look_unlock(MPI_Request *requests)
{
    (void)requests;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    MPI_Win_unlock(rank, window);
    return 0;
}

static int look_unlock_unchecked(MPI_Request *requests)
{
    (void)requests;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, window);
    MPI_Win_unlock(rank, window);
    return 0;
}

static int look_flush(MPI_Request *requests)
{
    (void)requests;
    MPI_Win_flush(rank, window);
    return 0;
}

static int look_flush_local(MPI_Request *requests)
{
    (void)requests;
    MPI_Win_flush_local(1 - rank, window);
    return 0;
}

static int look_flush_local_all(MPI_Request *requests)
{
    (void)requests;
    MPI_Win_flush_local_all(window);
    return 0;
}

/* Rank 0 looks while the other one waits. */
static void look(const char *name, look_fn *fn)
{
    MPI_Request requests[2];
    int values[2], other = 1 - rank;
    int n = 0;

    for (int i = 0; i < 2; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, other, TAG_TURN, MPI_COMM_WORLD, &requests[i]);
    if (rank == 0) {
        char text[80];
        long sleeps = count_sleeps();

        for (int i = 0; i < LOOKS; i++)
            n += fn(requests);
        sleeps = count_sleeps() - sleeps;
        snprintf(text, sizeof(text), "%s: %d looks, and %ld sleeps", name, LOOKS, sleeps);
        check(sleeps <= LOOKS / 10, text);
        check(n == 0, "something has come that nobody has sent");
    } else {
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 2; i++)
        MPI_Send(&n, 1, MPI_INT, other, TAG_TURN, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    end_case(name);
}

/* Calls that do nothing for lack of operations. */
static void look_at_window(void)
{
    static int memory;

    MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    look("unlock", look_unlock);
    look("unlock_unchecked", look_unlock_unchecked);
    MPI_Win_lock_all(0, window);
    look("flush", look_flush);
    look("flush_local", look_flush_local);
    look("flush_local_all", look_flush_local_all);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

/* ---- probes that find a message ---- */

static int find_iprobe(void)
{
    int flag;

    MPI_Iprobe(1, TAG_HERE, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int find_probe(void)
{
    MPI_Probe(1, TAG_HERE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 1;
}

static int find_improbe(void)
{
    MPI_Message message;
    int flag, value;

    MPI_Improbe(1, TAG_HERE, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    if (flag)
        MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    return flag;
}

static int find_mprobe(void)
{
    MPI_Message message;
    int value;

    MPI_Mprobe(1, TAG_HERE, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    return 1;
}

/* Rank 0 finds one message of LOOKS each time while the other one waits. The last message tells that all are there. */
static void find(const char *name, int (*fn)(void), int takes)
{
    int value = 0;

    if (rank == 0) {
        char text[80];
        long sleeps;
        int n = 0;

        MPI_Recv(&value, 1, MPI_INT, 1, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleeps = count_sleeps();
        for (int i = 0; i < LOOKS; i++)
            n += fn();
        sleeps = count_sleeps() - sleeps;
        snprintf(text, sizeof(text), "%s: %d messages found, and %ld sleeps", name, n, sleeps);
        check(sleeps <= LOOKS / 10, text);
        check(n == LOOKS, "a message that is here is not found");
        for (int i = 0; i < LOOKS && !takes; i++)
            MPI_Recv(&value, 1, MPI_INT, 1, TAG_HERE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 1, TAG_TURN, MPI_COMM_WORLD);
    } else {
        for (int i = 0; i < LOOKS; i++)
            MPI_Send(&i, 1, MPI_INT, 0, TAG_HERE, MPI_COMM_WORLD);
        MPI_Send(&value, 1, MPI_INT, 0, TAG_END, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 0, TAG_TURN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    end_case(name);
}

static volatile sig_atomic_t is_told;

static void tell(int signal)
{
    (void)signal;
    is_told = 1;
}

/* The sender tells its end past MPI, so rank 0 calls nothing but MPI_Iprobe, which has to let the messages in. */
static void find_beside_sends(void)
{
    pid_t own = getpid(), other;
    int value = 0;

    signal(SIGUSR1, tell);
    alarm(PATIENCE_S); /* ends the program */
    MPI_Sendrecv(&own, sizeof(own), MPI_BYTE, 1 - rank, TAG_TURN, &other, sizeof(other), MPI_BYTE, 1 - rank, TAG_TURN,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) {
        while (!is_told)
            find_iprobe();
        for (int i = 0; i < STREAM; i++) {
            MPI_Recv(&value, 1, MPI_INT, 1, TAG_HERE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(value == i, "a message is not in its place");
        }
    } else {
        for (int i = 0; i < STREAM; i++)
            MPI_Send(&i, 1, MPI_INT, 0, TAG_HERE, MPI_COMM_WORLD);
        kill(other, SIGUSR1);
    }
    alarm(0);
    end_case("find_beside_sends");
}

/* ---- threads ---- */

static void work(void)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < WORK_NS);
}

static void *wait_for_end(void *argument)
{
    int value;

    (void)argument;
    MPI_Recv(&value, 1, MPI_INT, 1, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void send_beside_a_wait(void)
{
    int value = 0;

    if (rank == 0) {
        pthread_t thread;
        char text[80];
        long sleeps = 0;

        pthread_create(&thread, NULL, wait_for_end, NULL);
        for (int i = 0; i < SENDS; i++) {
            long before;

            work();
            before = count_sleeps();
            MPI_Send(&i, 1, MPI_INT, 1, TAG_STREAM, MPI_COMM_WORLD);
            sleeps += count_sleeps() - before;
        }
        snprintf(text, sizeof(text), "%d sends beside a thread that waits, and %ld sleeps", SENDS, sleeps);
        check(sleeps <= SENDS / 5, text);
        pthread_join(thread, NULL);
    } else {
        for (int i = 0; i < SENDS; i++) {
            MPI_Recv(&value, 1, MPI_INT, 0, TAG_STREAM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(value == i, "a message is not in its place");
        }
        MPI_Send(&value, 1, MPI_INT, 0, TAG_END, MPI_COMM_WORLD);
    }
    end_case("send_beside_a_wait");
}

int main(int argc, char **argv)
{
    int has_threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    int has_credits = argc > 1 && strcmp(argv[1], "credits") == 0;
    int provided;

    crowd();
    MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (has_threads) {
        send_beside_a_wait();
    } else if (has_credits) {
        find_beside_sends();
    } else {
        look("test", look_test);
        look("testany", look_testany);
        look("testall", look_testall);
        look("testsome", look_testsome);
        look("iprobe", look_iprobe);
        look("improbe", look_improbe);
        find("find_iprobe", find_iprobe, 0);
        find("find_probe", find_probe, 0);
        find("find_improbe", find_improbe, 1);
        find("find_mprobe", find_mprobe, 1);
        look_at_window();
    }
    MPI_Finalize();
    return 0;
}
