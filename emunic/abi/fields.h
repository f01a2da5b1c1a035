/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of fields. A message, a packet's head or a list of words has one table: a row for each field, in the order of
 * the wire. Two functions walk it: one writes the fields of a struct, the other reads them and refuses a value that is
 * out of its bounds. Rules that join several fields stay with the message.
 *
 * Both are inlined, and unrolled with the table at hand: a field costs as much as a line written for it.
 */
#ifndef EMUNIC_ABI_FIELDS_H
#define EMUNIC_ABI_FIELDS_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- numbers in network byte order ---- */

static inline uint8_t *emu_wire_put16(uint8_t *at, uint16_t value)
{
    value = htobe16(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline uint8_t *emu_wire_put32(uint8_t *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline uint8_t *emu_wire_put64(uint8_t *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline uint16_t emu_wire_get16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return be16toh(value);
}

static inline uint32_t emu_wire_get32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}

static inline uint64_t emu_wire_get64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return be64toh(value);
}

/* ---- rows ---- */

enum emu_field_kind {
    EMU_FIELD_IN_RANGE, /* a number from `first` to `last` */
    EMU_FIELD_IN_MASK,  /* bits of `last` */
    EMU_FIELD_CUT,      /* likewise; other bits of the struct's field are not written */
    EMU_FIELD_FIXED,    /* always `first`, no field of the struct */
    EMU_FIELD_UNREAD,   /* written as 0, read by nobody */
    EMU_FIELD_ARRAY,    /* bytes as they are */
    EMU_FIELD_STRING,   /* likewise; the last of them is 0 */
};

struct emu_field {
    uint8_t kind;    /* enum emu_field_kind */
    uint8_t bytes;   /* on the wire, as in the struct; 1, 2, 4 or 8 of a number */
    uint16_t offset; /* in the struct */
    uint64_t first;
    uint64_t last;
};

#define EMU_FIELD_ROW(kind, type, member, first, last)                                                                 \
    {                                                                                                                  \
        kind, sizeof(((type *)0)->member), offsetof(type, member), first, last                                         \
    }

#define EMU_FIELD(type, member)                    EMU_FIELD_ROW(EMU_FIELD_IN_RANGE, type, member, 0, UINT64_MAX)
#define EMU_FIELD_RANGE(type, member, first, last) EMU_FIELD_ROW(EMU_FIELD_IN_RANGE, type, member, first, last)
#define EMU_FIELD_BITS(type, member, mask)         EMU_FIELD_ROW(EMU_FIELD_IN_MASK, type, member, 0, mask)
#define EMU_FIELD_BITS_CUT(type, member, mask)     EMU_FIELD_ROW(EMU_FIELD_CUT, type, member, 0, mask)
#define EMU_FIELD_BYTES(type, member)              EMU_FIELD_ROW(EMU_FIELD_ARRAY, type, member, 0, 0)
#define EMU_FIELD_TEXT(type, member)               EMU_FIELD_ROW(EMU_FIELD_STRING, type, member, 0, 0)
#define EMU_FIELD_VALUE(bytes, value)                                                                                  \
    {                                                                                                                  \
        EMU_FIELD_FIXED, bytes, 0, value, value                                                                        \
    }
#define EMU_FIELD_ZERO(bytes) EMU_FIELD_VALUE(bytes, 0)
#define EMU_FIELD_SKIP(bytes)                                                                                          \
    {                                                                                                                  \
        EMU_FIELD_UNREAD, bytes, 0, 0, 0                                                                               \
    }

/* A table and the number of its rows: two arguments of the functions below. */
#define EMU_FIELDS(table) (table), sizeof(table) / sizeof((table)[0])

/* ---- walking ---- */

#define EMU_FIELDS_INLINE static inline __attribute__((always_inline))

EMU_FIELDS_INLINE uint64_t emu_field_load(const struct emu_field *f, const void *from)
{
    const uint8_t *at = (const uint8_t *)from + f->offset;
    uint16_t value16;
    uint32_t value32;
    uint64_t value64;

    switch (f->bytes) {
    case 1:
        return *at;
    case 2:
        memcpy(&value16, at, sizeof(value16));
        return value16;
    case 4:
        memcpy(&value32, at, sizeof(value32));
        return value32;
    default:
        memcpy(&value64, at, sizeof(value64));
        return value64;
    }
}

EMU_FIELDS_INLINE void emu_field_store(const struct emu_field *f, void *to, uint64_t value)
{
    uint8_t *at = (uint8_t *)to + f->offset;
    uint8_t value8 = (uint8_t)value;
    uint16_t value16 = (uint16_t)value;
    uint32_t value32 = (uint32_t)value;

    switch (f->bytes) {
    case 1:
        memcpy(at, &value8, sizeof(value8));
        return;
    case 2:
        memcpy(at, &value16, sizeof(value16));
        return;
    case 4:
        memcpy(at, &value32, sizeof(value32));
        return;
    default:
        memcpy(at, &value, sizeof(value));
        return;
    }
}

EMU_FIELDS_INLINE bool emu_field_is_sound(const struct emu_field *f, uint64_t value)
{
    if (f->kind == EMU_FIELD_IN_MASK || f->kind == EMU_FIELD_CUT)
        return (value & ~f->last) == 0;
    return value >= f->first && value <= f->last;
}

EMU_FIELDS_INLINE void emu_field_put(uint8_t *at, const struct emu_field *f, const void *from)
{
    uint64_t value = f->first;

    if (f->kind == EMU_FIELD_ARRAY || f->kind == EMU_FIELD_STRING) {
        memcpy(at, (const uint8_t *)from + f->offset, f->bytes);
        return;
    }
    if (f->kind != EMU_FIELD_FIXED && f->kind != EMU_FIELD_UNREAD)
        value = emu_field_load(f, from);
    if (f->kind == EMU_FIELD_CUT)
        value &= f->last;
    switch (f->bytes) {
    case 1:
        *at = (uint8_t)value;
        return;
    case 2:
        emu_wire_put16(at, (uint16_t)value);
        return;
    case 4:
        emu_wire_put32(at, (uint32_t)value);
        return;
    default:
        emu_wire_put64(at, value);
        return;
    }
}

EMU_FIELDS_INLINE uint64_t emu_field_get(const uint8_t *at, const struct emu_field *f)
{
    switch (f->bytes) {
    case 1:
        return *at;
    case 2:
        return emu_wire_get16(at);
    case 4:
        return emu_wire_get32(at);
    default:
        return emu_wire_get64(at);
    }
}

/* False: the value is out of its bounds. */
EMU_FIELDS_INLINE bool emu_field_parse(const uint8_t *at, const struct emu_field *f, void *to)
{
    uint64_t value;

    if (f->kind == EMU_FIELD_UNREAD)
        return true;
    if (f->kind == EMU_FIELD_ARRAY || f->kind == EMU_FIELD_STRING) {
        memcpy((uint8_t *)to + f->offset, at, f->bytes);
        return f->kind == EMU_FIELD_ARRAY || at[f->bytes - 1] == 0;
    }
    value = emu_field_get(at, f);
    if (!emu_field_is_sound(f, value))
        return false;
    if (f->kind != EMU_FIELD_FIXED)
        emu_field_store(f, to, value);
    return true;
}

/* Writes the fields of `from` in the order of the table. Returns the place behind them. */
EMU_FIELDS_INLINE uint8_t *emu_fields_put(uint8_t *at, const struct emu_field *fields, unsigned n, const void *from)
{
#pragma GCC unroll 32
    for (unsigned i = 0; i < n; i++) {
        emu_field_put(at, &fields[i], from);
        at += fields[i].bytes;
    }
    return at;
}

/* Reads them. False: one is out of its bounds; `to` may be written in part. All their bytes must be there. */
EMU_FIELDS_INLINE bool emu_fields_parse(const uint8_t *at, const struct emu_field *fields, unsigned n, void *to)
{
#pragma GCC unroll 32
    for (unsigned i = 0; i < n; i++) {
        if (!emu_field_parse(at, &fields[i], to))
            return false;
        at += fields[i].bytes;
    }
    return true;
}

#endif
