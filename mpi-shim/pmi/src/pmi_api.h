/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_API_H
#define PMI_SRC_API_H

/* For the files that define the public calls: these alone leave the library, which is built with hidden symbols. */
#pragma GCC visibility push(default)
#include <pmi.h>
#pragma GCC visibility pop

#endif
