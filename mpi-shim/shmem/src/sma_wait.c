/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for one's own memory to change, and tests of it.
 *
 * Others change it without our help. So waiting is looking: some looks in a row, then one look after each
 * dmapp_progress(), which yields the processor or sleeps until something has arrived.
 */
#include "emunic/base/clock.h"
#include "mpi-shim/shmem/src/sma.h"

void smai_wait_politely(void)
{
    dmapp_progress();
}

/*
 * PEs that run now, on other processors, come by themselves. If more are missing than there are other processors, one
 * waits for ours and gets it at once. Else the last ones are on their way, and are waited for as long as giving the
 * processor away would cost: so all processors change their PEs together, once a collective.
 */
void smai_wait_crowded(struct smai_patience *patience, int n_missing)
{
    uint64_t now_ns;

    if (n_missing < smai.n_processors) {
        now_ns = emu_clock_ns();
        if (patience->until_ns == 0)
            patience->until_ns = now_ns + smai.switch_ns;
        if (now_ns < patience->until_ns)
            return;
    }
    patience->until_ns = 0;
    smai_wait_politely();
}

void smai_check_wait(const char *call, const volatile void *ivar, size_t bytes, int cmp)
{
    if (!smai.is_up)
        smai_fail(call, "not initialised");
    if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_GE)
        smai_fail(call, "cmp %d: there is none", cmp);
    if (!smai.is_checked)
        return;
    smai_check_symmetric(call, "ivar", ivar, bytes);
}

static bool is_looked_at(const struct smai_condition *c, size_t i)
{
    return !c->status || c->status[i] == 0;
}

static bool holds(const struct smai_condition *c, size_t i)
{
    const volatile uint8_t *ivar = c->ivars;
    const uint8_t *value = c->values;

    return c->holds(ivar + i * c->elem_bytes, c->cmp, value + (c->is_vector ? i * c->elem_bytes : 0));
}

static size_t count_looked_at(const struct smai_condition *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += is_looked_at(c, i);
    return n;
}

bool smai_test_all(const struct smai_condition *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (is_looked_at(c, i) && !holds(c, i))
            return false;
    }
    return true;
}

size_t smai_test_any(const struct smai_condition *c)
{
    static _Thread_local size_t turn; /* where the last one was found: so none starves */
    size_t first = c->n > 0 ? turn % c->n : 0;

    for (size_t k = 0; k < c->n; k++) {
        size_t i = first + k < c->n ? first + k : first + k - c->n;

        if (is_looked_at(c, i) && holds(c, i)) {
            turn = i + 1;
            return i;
        }
    }
    return SIZE_MAX;
}

size_t smai_test_some(const struct smai_condition *c, size_t *indices)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (is_looked_at(c, i) && holds(c, i))
            indices[n++] = i;
    }
    return n;
}

void smai_wait_all(const struct smai_condition *c)
{
    unsigned spins = 0;

    while (!smai_test_all(c))
        smai_wait_step(&spins);
}

size_t smai_wait_any(const struct smai_condition *c)
{
    unsigned spins = 0;
    size_t i;

    if (count_looked_at(c) == 0)
        return SIZE_MAX;
    while ((i = smai_test_any(c)) == SIZE_MAX)
        smai_wait_step(&spins);
    return i;
}

size_t smai_wait_some(const struct smai_condition *c, size_t *indices)
{
    unsigned spins = 0;
    size_t n;

    if (count_looked_at(c) == 0)
        return 0;
    while ((n = smai_test_some(c, indices)) == 0)
        smai_wait_step(&spins);
    return n;
}
