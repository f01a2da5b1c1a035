/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent buffered sends (MPI_Bsend_init), which Open MPI's pml/cm does not do right: it packs the data of the first
 * start into the attached buffer, and at each further start the leftovers of that copy. So each start becomes a
 * buffered send of its own here, which is let go at once; it is complete when its data have been copied.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <ompi/mca/pml/pml.h>
#include <ompi/request/request.h>

struct buffered {
    ompi_request_t super;
    const void *data;
    size_t count;
    ompi_datatype_t *type; /* counted */
    int dest;
    int tag;
};

OBJ_CLASS_DECLARATION(buffered);
typedef struct buffered buffered;
OBJ_CLASS_INSTANCE(buffered, ompi_request_t, NULL, NULL);

static mca_pml_base_module_isend_init_fn_t others; /* of pml/cm */

static int start(size_t n, ompi_request_t **requests)
{
    for (size_t i = 0; i < n; i++) {
        struct buffered *send = (struct buffered *)requests[i];
        ompi_request_t *once;
        int r;

        send->super.req_complete = REQUEST_PENDING;
        send->super.req_state = OMPI_REQUEST_ACTIVE;
        r = MCA_PML_CALL(isend(send->data, send->count, send->type, send->dest, send->tag, MCA_PML_BASE_SEND_BUFFERED,
                               send->super.req_mpi_object.comm, &once));
        if (r != OMPI_SUCCESS)
            return r;
        (void)ompi_request_free(&once);
        ompi_request_complete(&send->super, true);
    }
    return OMPI_SUCCESS;
}

static int release(ompi_request_t **request)
{
    struct buffered *send = (struct buffered *)*request;

    OMPI_REQUEST_FINI(&send->super);
    OBJ_RELEASE(send->super.req_mpi_object.comm);
    OBJ_RELEASE(send->type);
    OBJ_RELEASE(send);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* Too late: the data have been copied. */
static int cancel(ompi_request_t *request, int flag)
{
    (void)request;
    (void)flag;
    return OMPI_SUCCESS;
}

static int pml_isend_init(const void *data, size_t count, ompi_datatype_t *type, int dest, int tag,
                          mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm, ompi_request_t **request_out)
{
    struct buffered *send;

    if (mode != MCA_PML_BASE_SEND_BUFFERED)
        return others(data, count, type, dest, tag, mode, comm, request_out);
    send = OBJ_NEW(buffered);
    if (!send)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OMPI_REQUEST_INIT(&send->super, true);
    send->super.req_type = OMPI_REQUEST_PML;
    send->super.req_status = ompi_request_empty.req_status;
    send->super.req_start = start;
    send->super.req_free = release;
    send->super.req_cancel = cancel;
    send->super.req_mpi_object.comm = comm;
    send->data = data;
    send->count = count;
    send->type = type;
    send->dest = dest;
    send->tag = tag;
    OBJ_RETAIN(comm);
    OBJ_RETAIN(type);
    *request_out = &send->super;
    return OMPI_SUCCESS;
}

void mp3_mend_buffered(void)
{
    if (others)
        return;
    others = mca_pml.pml_isend_init;
    mca_pml.pml_isend_init = pml_isend_init;
}
