/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 128 bits of a memory handle.
 *
 *              63 ..... 52   51 ................................ 0
 *   qword1   | MDH         | base address >> 12                   |
 *
 *              63 .. 56   55 ..... 42   41 .. 34   33 .... 28   27 .......... 0
 *   qword2   | CRC-8    | turn, gen.  | flags    | log2(page) | number of pages |
 *
 * That is format 1, the one we hand out. Programs treat a handle as opaque, except libfabric, which packs it into
 * a 64-bit key and builds a new one from the key: always format 1, page size 4 KiB, all ones as page count, flags
 * cleared but for READONLY and VMDH, and the CRC left 0 on handles for FMA. So a handle is looked up by MDH and
 * address, bounds come from the owner's table and not from the page count, and the CRC counts for block transfers
 * only.
 *
 * Our addition: the 14 bits that the original leaves unused. Registrations may share an MDH; the upper 3 bits tell
 * which of them it is, its turn. The lower 11 carry the generation, which tells a stale handle from its successor; 0
 * means "not told", as in every handle that somebody rebuilt: MDH and address have to do then.
 *
 * Format 2 (flag NEW_FRMT) is read too: the MDH sits in the bits of our addition, and entropy where the MDH
 * was. Pure functions; any thread. Source: spec/ugni.md Appendix B.
 */
#ifndef LIBUGNI_HANDLE_BITS_H
#define LIBUGNI_HANDLE_BITS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <gni_pub.h>

/* Flag bits, in the order of gni_mem_handle_attr_t: the flag of an attribute is 1 << (attribute - 1). */
#define GNII_HNDL_READONLY  0x01u
#define GNII_HNDL_VMDH      0x02u
#define GNII_HNDL_MRT       0x04u
#define GNII_HNDL_GART      0x08u
#define GNII_HNDL_IOMMU     0x10u
#define GNII_HNDL_PCI_IOMMU 0x20u
#define GNII_HNDL_CLONE     0x40u
#define GNII_HNDL_NEW_FRMT  0x80u

#define GNII_HNDL_VA_MASK      ((1ULL << 52) - 1) /* of base address >> 12 */
#define GNII_HNDL_MDH_SHIFT    52                 /* qword1, format 1 */
#define GNII_HNDL_MDH_MASK     0xfffu
#define GNII_HNDL_PAGES_MASK   0xfffffffu
#define GNII_HNDL_PSHIFT_SHIFT 28
#define GNII_HNDL_PSHIFT_MASK  0x3fu
#define GNII_HNDL_FLAGS_SHIFT  34
#define GNII_HNDL_FLAGS_MASK   0xffu
#define GNII_HNDL_GEN_SHIFT    42 /* qword2, format 1; format 2 keeps the MDH here */
#define GNII_HNDL_GEN_MASK     0x7ffu
#define GNII_HNDL_TURN_SHIFT   53 /* qword2, format 1 */
#define GNII_HNDL_TURN_MASK    0x7u
#define GNII_HNDL_CRC_SHIFT    56

/* Base addresses that libfabric's key can carry: 49 bits, sign-extended. */
#define GNII_HNDL_VA_BITS 49

struct gnii_handle_fields {
    uint64_t base_va;    /* page aligned; 0 for an address by offset (VMDH) */
    uint32_t n_pages;    /* saturates at GNII_HNDL_PAGES_MASK: never take bounds from it */
    uint16_t mdh;        /* number of the memory domain: MDH, 0..4095, + 4096 * turn */
    uint16_t generation; /* 0 = not told */
    uint8_t page_shift;  /* log2 of the page size in bytes, 12 for 4 KiB */
    uint8_t flags;       /* GNII_HNDL_*, without NEW_FRMT */
};

/* The address whose low 49 bits are those of va and whose upper bits repeat bit 48. */
static inline uint64_t gnii_va_sign_extend(uint64_t va)
{
    const uint64_t sign = 1ULL << (GNII_HNDL_VA_BITS - 1);

    va &= (1ULL << GNII_HNDL_VA_BITS) - 1;
    return (va ^ sign) - sign;
}

/* CRC-8, polynomial 0x8C reflected (x^8 + x^5 + x^4 + 1), start 0: what one byte does to a CRC. */
static inline uint8_t gnii_crc8_byte(uint8_t crc, uint8_t byte)
{
    static const uint8_t table[256] = {
        0x00, 0x5e, 0xbc, 0xe2, 0x61, 0x3f, 0xdd, 0x83, 0xc2, 0x9c, 0x7e, 0x20, 0xa3, 0xfd, 0x1f, 0x41, 0x9d, 0xc3,
        0x21, 0x7f, 0xfc, 0xa2, 0x40, 0x1e, 0x5f, 0x01, 0xe3, 0xbd, 0x3e, 0x60, 0x82, 0xdc, 0x23, 0x7d, 0x9f, 0xc1,
        0x42, 0x1c, 0xfe, 0xa0, 0xe1, 0xbf, 0x5d, 0x03, 0x80, 0xde, 0x3c, 0x62, 0xbe, 0xe0, 0x02, 0x5c, 0xdf, 0x81,
        0x63, 0x3d, 0x7c, 0x22, 0xc0, 0x9e, 0x1d, 0x43, 0xa1, 0xff, 0x46, 0x18, 0xfa, 0xa4, 0x27, 0x79, 0x9b, 0xc5,
        0x84, 0xda, 0x38, 0x66, 0xe5, 0xbb, 0x59, 0x07, 0xdb, 0x85, 0x67, 0x39, 0xba, 0xe4, 0x06, 0x58, 0x19, 0x47,
        0xa5, 0xfb, 0x78, 0x26, 0xc4, 0x9a, 0x65, 0x3b, 0xd9, 0x87, 0x04, 0x5a, 0xb8, 0xe6, 0xa7, 0xf9, 0x1b, 0x45,
        0xc6, 0x98, 0x7a, 0x24, 0xf8, 0xa6, 0x44, 0x1a, 0x99, 0xc7, 0x25, 0x7b, 0x3a, 0x64, 0x86, 0xd8, 0x5b, 0x05,
        0xe7, 0xb9, 0x8c, 0xd2, 0x30, 0x6e, 0xed, 0xb3, 0x51, 0x0f, 0x4e, 0x10, 0xf2, 0xac, 0x2f, 0x71, 0x93, 0xcd,
        0x11, 0x4f, 0xad, 0xf3, 0x70, 0x2e, 0xcc, 0x92, 0xd3, 0x8d, 0x6f, 0x31, 0xb2, 0xec, 0x0e, 0x50, 0xaf, 0xf1,
        0x13, 0x4d, 0xce, 0x90, 0x72, 0x2c, 0x6d, 0x33, 0xd1, 0x8f, 0x0c, 0x52, 0xb0, 0xee, 0x32, 0x6c, 0x8e, 0xd0,
        0x53, 0x0d, 0xef, 0xb1, 0xf0, 0xae, 0x4c, 0x12, 0x91, 0xcf, 0x2d, 0x73, 0xca, 0x94, 0x76, 0x28, 0xab, 0xf5,
        0x17, 0x49, 0x08, 0x56, 0xb4, 0xea, 0x69, 0x37, 0xd5, 0x8b, 0x57, 0x09, 0xeb, 0xb5, 0x36, 0x68, 0x8a, 0xd4,
        0x95, 0xcb, 0x29, 0x77, 0xf4, 0xaa, 0x48, 0x16, 0xe9, 0xb7, 0x55, 0x0b, 0x88, 0xd6, 0x34, 0x6a, 0x2b, 0x75,
        0x97, 0xc9, 0x4a, 0x14, 0xf6, 0xa8, 0x74, 0x2a, 0xc8, 0x96, 0x15, 0x4b, 0xa9, 0xf7, 0xb6, 0xe8, 0x0a, 0x54,
        0xd7, 0x89, 0x6b, 0x35,
    };

    return table[crc ^ byte];
}

/* CRC of a handle: over the 8 bytes of qword1 and the 7 low bytes of qword2, least significant first. */
static inline uint8_t gnii_handle_crc(const gni_mem_handle_t *hndl)
{
    uint8_t crc = 0;

    for (unsigned shift = 0; shift < 64; shift += 8)
        crc = gnii_crc8_byte(crc, (uint8_t)(hndl->qword1 >> shift));
    for (unsigned shift = 0; shift < 56; shift += 8)
        crc = gnii_crc8_byte(crc, (uint8_t)(hndl->qword2 >> shift));
    return crc;
}

/* Check for block transfers only: handles for FMA may carry no CRC. */
static inline bool gnii_handle_crc_is_good(const gni_mem_handle_t *hndl)
{
    return gnii_handle_crc(hndl) == (uint8_t)(hndl->qword2 >> GNII_HNDL_CRC_SHIFT);
}

static inline bool gnii_handle_is_null(const gni_mem_handle_t *hndl)
{
    return (hndl->qword1 | hndl->qword2) == 0;
}

/* One attribute of GNI_MemHndlQueryAttr(), which must be a valid enumerator. */
static inline bool gnii_handle_has_attr(const gni_mem_handle_t *hndl, gni_mem_handle_attr_t attr)
{
    return (hndl->qword2 >> GNII_HNDL_FLAGS_SHIFT >> ((unsigned)attr - 1) & 1) != 0;
}

/*
 * Make a format 1 handle, CRC included. -EINVAL if a field does not fit: base_va not page aligned to 4 KiB or not
 * the sign extension of 49 bits, mdh, generation or page_shift too wide, NEW_FRMT in flags; and for MDH 0 at
 * address 0 without the VMDH flag, which would look like no handle to libfabric's key. n_pages saturates.
 */
static inline int gnii_handle_encode(const struct gnii_handle_fields *f, gni_mem_handle_t *hndl_out)
{
    uint32_t n_pages = f->n_pages < GNII_HNDL_PAGES_MASK ? f->n_pages : GNII_HNDL_PAGES_MASK;
    gni_mem_handle_t h;

    if ((f->base_va & 0xfff) != 0 || gnii_va_sign_extend(f->base_va) != f->base_va)
        return -EINVAL;
    if (f->mdh >> 12 > GNII_HNDL_TURN_MASK || f->generation > GNII_HNDL_GEN_MASK ||
        f->page_shift > GNII_HNDL_PSHIFT_MASK || (f->flags & GNII_HNDL_NEW_FRMT) != 0)
        return -EINVAL;
    if (f->mdh == 0 && f->base_va == 0 && (f->flags & GNII_HNDL_VMDH) == 0)
        return -EINVAL;

    h.qword1 = (uint64_t)(f->mdh & GNII_HNDL_MDH_MASK) << GNII_HNDL_MDH_SHIFT | (f->base_va >> 12 & GNII_HNDL_VA_MASK);
    h.qword2 = (uint64_t)(f->mdh >> 12) << GNII_HNDL_TURN_SHIFT | (uint64_t)f->generation << GNII_HNDL_GEN_SHIFT |
               (uint64_t)f->flags << GNII_HNDL_FLAGS_SHIFT | (uint64_t)f->page_shift << GNII_HNDL_PSHIFT_SHIFT |
               n_pages;
    h.qword2 |= (uint64_t)gnii_handle_crc(&h) << GNII_HNDL_CRC_SHIFT;
    *hndl_out = h;
    return 0;
}

/*
 * Take a handle of either format apart. -EINVAL for {0, 0} only: any other bits are some handle, and whether a
 * region stands behind it is the owner's table to say. The CRC is not looked at. A format 2 handle tells no
 * generation.
 */
static inline int gnii_handle_decode(const gni_mem_handle_t *hndl, struct gnii_handle_fields *f_out)
{
    unsigned flags = (unsigned)(hndl->qword2 >> GNII_HNDL_FLAGS_SHIFT & GNII_HNDL_FLAGS_MASK);
    bool is_format2 = (flags & GNII_HNDL_NEW_FRMT) != 0;
    uint64_t upper = hndl->qword2 >> GNII_HNDL_GEN_SHIFT;

    if (gnii_handle_is_null(hndl))
        return -EINVAL;

    f_out->base_va = (hndl->qword1 & GNII_HNDL_VA_MASK) << 12;
    f_out->n_pages = (uint32_t)(hndl->qword2 & GNII_HNDL_PAGES_MASK);
    f_out->mdh = (uint16_t)((is_format2 ? upper : hndl->qword1 >> GNII_HNDL_MDH_SHIFT) & GNII_HNDL_MDH_MASK);
    if (!is_format2)
        f_out->mdh |= (uint16_t)((hndl->qword2 >> GNII_HNDL_TURN_SHIFT & GNII_HNDL_TURN_MASK) << 12);
    f_out->generation = (uint16_t)(is_format2 ? 0 : upper & GNII_HNDL_GEN_MASK);
    f_out->page_shift = (uint8_t)(hndl->qword2 >> GNII_HNDL_PSHIFT_SHIFT & GNII_HNDL_PSHIFT_MASK);
    f_out->flags = (uint8_t)(flags & ~GNII_HNDL_NEW_FRMT);
    return 0;
}

#endif
