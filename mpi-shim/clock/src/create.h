/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of this library itself, which have the host's time: pthread_create() of libc. Any thread. */
#ifndef EMUNIC_MPI_SHIM_CLOCK_CREATE_H
#define EMUNIC_MPI_SHIM_CLOCK_CREATE_H

#include <pthread.h>

int clock_create_thread(pthread_t *thread_out, const pthread_attr_t *attributes, void *(*function)(void *), void *arg);

#endif
