/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of reductions, a function for each type.
 *
 * SUM and PROD on all numbers; MAX and MIN on real ones; logical and bitwise operations on integers; MINLOC and MAXLOC
 * on the pairs. Signed integers are added and multiplied as unsigned ones, so they wrap. Source: spec/dmapp.md 4.15.
 */
#include "libdmapp/src/reduce.h"

#include <math.h>
#include <stdint.h>

uint32_t dmappi_reduce_size(dmapp_c_type_t type)
{
    switch (type) {
    case DMAPP_C_INT32:
        return sizeof(int32_t);
    case DMAPP_C_UINT32:
        return sizeof(uint32_t);
    case DMAPP_C_INT64:
        return sizeof(int64_t);
    case DMAPP_C_UINT64:
        return sizeof(uint64_t);
    case DMAPP_C_FLOAT:
        return sizeof(float);
    case DMAPP_C_DOUBLE:
        return sizeof(double);
    case DMAPP_C_COMPLEX8:
        return sizeof(dmapp_c_complex8_t);
    case DMAPP_C_COMPLEX16:
        return sizeof(dmapp_c_complex16_t);
    case DMAPP_C_FLOAT_UINT64:
        return sizeof(dmapp_c_float_uint64_t);
    case DMAPP_C_DOUBLE_UINT64:
        return sizeof(dmapp_c_double_uint64_t);
    case DMAPP_C_INT32_UINT64:
        return sizeof(dmapp_c_int_uint64_t);
    case DMAPP_C_INT64_UINT64:
        return sizeof(dmapp_c_int64_uint64_t);
    default:
        return 0;
    }
}

bool dmappi_reduce_is_legal(dmapp_c_type_t type, dmapp_c_op_t op)
{
    switch (op) {
    case DMAPP_C_SUM:
    case DMAPP_C_PROD:
        return type >= DMAPP_C_INT32 && type <= DMAPP_C_COMPLEX16;
    case DMAPP_C_MAX:
    case DMAPP_C_MIN:
        return type >= DMAPP_C_INT32 && type <= DMAPP_C_DOUBLE;
    case DMAPP_C_LAND:
    case DMAPP_C_BAND:
    case DMAPP_C_LOR:
    case DMAPP_C_BOR:
    case DMAPP_C_LXOR:
    case DMAPP_C_BXOR:
        return type >= DMAPP_C_INT32 && type <= DMAPP_C_UINT64;
    case DMAPP_C_MINLOC:
    case DMAPP_C_MAXLOC:
        return type >= DMAPP_C_FLOAT_UINT64 && type <= DMAPP_C_INT64_UINT64;
    default:
        return false;
    }
}

/* unsigned_type: the one of the same width, for arithmetic that wraps. */
#define INTEGER(name, type, unsigned_type)                                                                             \
    static type reduce_##name(type a, type b, dmapp_c_op_t op)                                                         \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case DMAPP_C_SUM:                                                                                              \
            return (type)((unsigned_type)a + (unsigned_type)b);                                                        \
        case DMAPP_C_PROD:                                                                                             \
            return (type)((unsigned_type)a * (unsigned_type)b);                                                        \
        case DMAPP_C_MAX:                                                                                              \
            return a > b ? a : b;                                                                                      \
        case DMAPP_C_MIN:                                                                                              \
            return a < b ? a : b;                                                                                      \
        case DMAPP_C_LAND:                                                                                             \
            return a && b;                                                                                             \
        case DMAPP_C_BAND:                                                                                             \
            return a & b;                                                                                              \
        case DMAPP_C_LOR:                                                                                              \
            return a || b;                                                                                             \
        case DMAPP_C_BOR:                                                                                              \
            return a | b;                                                                                              \
        case DMAPP_C_LXOR:                                                                                             \
            return !a != !b;                                                                                           \
        default:                                                                                                       \
            return a ^ b;                                                                                              \
        }                                                                                                              \
    }

#define REAL(name, type, minimum, maximum)                                                                             \
    static type reduce_##name(type a, type b, dmapp_c_op_t op)                                                         \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case DMAPP_C_SUM:                                                                                              \
            return a + b;                                                                                              \
        case DMAPP_C_PROD:                                                                                             \
            return a * b;                                                                                              \
        case DMAPP_C_MAX:                                                                                              \
            return maximum(a, b);                                                                                      \
        default:                                                                                                       \
            return minimum(a, b);                                                                                      \
        }                                                                                                              \
    }

#define COMPLEX(name, type)                                                                                            \
    static type reduce_##name(type a, type b, dmapp_c_op_t op)                                                         \
    {                                                                                                                  \
        if (op == DMAPP_C_SUM)                                                                                         \
            return (type){ a.re + b.re, a.im + b.im };                                                                 \
        return (type){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };                                         \
    }

#define PAIR(name, type)                                                                                               \
    static type reduce_##name(type a, type b, dmapp_c_op_t op)                                                         \
    {                                                                                                                  \
        if (a.value == b.value)                                                                                        \
            return a.loc <= b.loc ? a : b;                                                                             \
        return (a.value < b.value) == (op == DMAPP_C_MINLOC) ? a : b;                                                  \
    }

INTEGER(int32, int32_t, uint32_t)
INTEGER(uint32, uint32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t)
INTEGER(uint64, uint64_t, uint64_t)
REAL(float, float, fminf, fmaxf)
REAL(double, double, fmin, fmax)
COMPLEX(complex8, dmapp_c_complex8_t)
COMPLEX(complex16, dmapp_c_complex16_t)
PAIR(float_uint64, dmapp_c_float_uint64_t)
PAIR(double_uint64, dmapp_c_double_uint64_t)
PAIR(int_uint64, dmapp_c_int_uint64_t)
PAIR(int64_uint64, dmapp_c_int64_uint64_t)

#define ALL_OF(name, type)                                                                                             \
    for (uint32_t i = 0; i < nelems; i++)                                                                              \
    ((type *)into)[i] = reduce_##name(((type *)into)[i], ((const type *)from)[i], op)

void dmappi_reduce(void *into, const void *from, uint32_t nelems, dmapp_c_type_t type, dmapp_c_op_t op)
{
    switch (type) {
    case DMAPP_C_INT32:
        ALL_OF(int32, int32_t);
        break;
    case DMAPP_C_UINT32:
        ALL_OF(uint32, uint32_t);
        break;
    case DMAPP_C_INT64:
        ALL_OF(int64, int64_t);
        break;
    case DMAPP_C_UINT64:
        ALL_OF(uint64, uint64_t);
        break;
    case DMAPP_C_FLOAT:
        ALL_OF(float, float);
        break;
    case DMAPP_C_DOUBLE:
        ALL_OF(double, double);
        break;
    case DMAPP_C_COMPLEX8:
        ALL_OF(complex8, dmapp_c_complex8_t);
        break;
    case DMAPP_C_COMPLEX16:
        ALL_OF(complex16, dmapp_c_complex16_t);
        break;
    case DMAPP_C_FLOAT_UINT64:
        ALL_OF(float_uint64, dmapp_c_float_uint64_t);
        break;
    case DMAPP_C_DOUBLE_UINT64:
        ALL_OF(double_uint64, dmapp_c_double_uint64_t);
        break;
    case DMAPP_C_INT32_UINT64:
        ALL_OF(int_uint64, dmapp_c_int_uint64_t);
        break;
    case DMAPP_C_INT64_UINT64:
        ALL_OF(int64_uint64, dmapp_c_int64_uint64_t);
        break;
    default:
        break;
    }
}
