/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi-shim/openmpi/looks.h"

#include <ompi_config.h>

#include <ompi/mca/pml/pml.h>
#include <ompi/request/request.h>

static void (*stir_rounds)(void);
static ompi_request_fns_t tests; /* Open MPI's own */
static mca_pml_base_module_iprobe_fn_t iprobe;
static mca_pml_base_module_improbe_fn_t improbe;

static int test(ompi_request_t **request, int *completed, ompi_status_public_t *status)
{
    int r = tests.req_test(request, completed, status);

    if (!*completed)
        stir_rounds();
    return r;
}

static int test_any(size_t n, ompi_request_t **requests, int *index, int *completed, ompi_status_public_t *status)
{
    int r = tests.req_test_any(n, requests, index, completed, status);

    if (!*completed)
        stir_rounds();
    return r;
}

static int test_all(size_t n, ompi_request_t **requests, int *completed, ompi_status_public_t *statuses)
{
    int r = tests.req_test_all(n, requests, completed, statuses);

    if (!*completed)
        stir_rounds();
    return r;
}

static int test_some(size_t n, ompi_request_t **requests, int *n_completed, int *indices,
                     ompi_status_public_t *statuses)
{
    int r = tests.req_test_some(n, requests, n_completed, indices, statuses);

    if (*n_completed == 0)
        stir_rounds();
    return r;
}

static int pml_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched, ompi_status_public_t *status)
{
    int r = iprobe(src, tag, comm, matched, status);

    if (!*matched)
        stir_rounds();
    return r;
}

static int pml_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                       struct ompi_message_t **message, ompi_status_public_t *status)
{
    int r = improbe(src, tag, comm, matched, message, status);

    if (!*matched)
        stir_rounds();
    return r;
}

void looks_begin(void (*stir)(void))
{
    if (stir_rounds)
        return;
    stir_rounds = stir;
    tests = ompi_request_functions;
    ompi_request_functions.req_test = test;
    ompi_request_functions.req_test_any = test_any;
    ompi_request_functions.req_test_all = test_all;
    ompi_request_functions.req_test_some = test_some;
    iprobe = mca_pml.pml_iprobe;
    improbe = mca_pml.pml_improbe;
    mca_pml.pml_iprobe = pml_iprobe;
    mca_pml.pml_improbe = pml_improbe;
}
