/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members of other users than emunic's own, whose memory emunic of root touches by movers, with their rights
 * (emunic/daemon/movers). Needs root, to become others.
 */
#ifndef TESTS_INTEGRATION_MOVED_H
#define TESTS_INTEGRATION_MOVED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "emunic/abi/abi.h"
#include "tests/common/fixture.h"
#include "tests/common/raw.h"

#define USER     65534u
#define PAGE     4096u
#define PTAG     80u
#define COOKIE   800u
#define LIMIT_NS "1500000000"  /* of an access, where it has to be reached */
#define LONG_NS  "60000000000" /* and where others must not wait for it */
#define MARK     0x6d61726b6d61726bu
#define FRESH    0x1111111111111111u
#define PATIENCE 20000 /* ms; only a test that fails waits so long */

#define RUN(test) cmocka_unit_test_setup_teardown(test, start_one, stop_one)

extern struct fx fx;
extern char folder[]; /* of this program, for everybody to read */

/* Of a group. */
int start(void **state);
int stop(void **state);

/* Each test has an emunic of its own: a user whose mover had to be killed may be kept out for some time. */
int start_limited(const char *limit_ns);
int start_one(void **state);
int stop_one(void **state);

/* True, and says so: not root. */
bool is_left_out(void);

/* ---- other users ---- */

/* A child that is USER does it. Its status. */
int as_user(int (*body)(void));

extern int stall_pipe[2];  /* to the test: the child is where it should be */
extern int resume_pipe[2]; /* from it: how to end */

enum {
    HANGS_UP = 'h', /* its port has to end */
    STANDS = 's',   /* its port has not ended yet */
    QUITS = 'q',
};

/* The same beside the test; returns when the child has written to stall_pipe. as_root: before it is USER; or NULL. */
pid_t start_to_stall(int (*as_root)(void), int (*body)(void));
void end_stall(pid_t child, char how);

/* ---- members ---- */

int register_page(struct raw *raw, void *at, struct emu_msg_memory *memory_out);

/* Between the poster's own process (`local`) and registered memory. */
struct emu_cmd transfer(uint8_t op, const struct raw *to, const struct emu_msg_memory *memory, const void *remote,
                        uint64_t local);
bool has_hung_up(const struct raw *raw);

/* Until emunic has taken all commands, or closed the port. False: neither in a long time. */
bool await_served(const struct raw *raw);
bool await_input(int fd);
void *private_page(void);

/* A descriptor of the copy, to write. */
int copy_program(const char *source, const char *to_path);

/* ---- one member, with a page ---- */

extern struct raw member;
extern struct emu_msg_memory registered;
extern uint64_t *page;

int open_member(void);
void post(uint8_t op, const uint64_t *remote, uint64_t local);
uint64_t word(unsigned i);

/* From word 0 to word 1. */
int put_and_look(void);
int body_moves_private_memory(void);

#endif
