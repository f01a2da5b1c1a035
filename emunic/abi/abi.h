/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers that every program of the project must agree on.
 *
 * The abi folder holds each layout that two programs share, and no code but inlines. Rules: fixed widths, offsets
 * instead of pointers, magic and version first, reserved fields zero. Any change of a layout raises
 * EMU_ABI_VERSION; the two sides compare it before they map anything and refuse each other with both numbers.
 */
#ifndef EMUNIC_ABI_ABI_H
#define EMUNIC_ABI_ABI_H

#include <stdint.h>

#define EMU_ABI_VERSION 16u

#define EMU_TABLE_MAGIC   0x4c424154554d45ull /* "EMUTABL" read as little-endian bytes */
#define EMU_SEGMENT_MAGIC 0x4745535f554d45ull /* "EMU_SEG" */

#define EMU_CACHE_LINE 64u

/* A page: the unit of registrations, of what one program maps of another, and of a GART entry. */
#define EMU_PAGE_BYTES 4096ull

/* The address, down to the begin of its page. */
static inline uint64_t emu_page_down(uint64_t addr)
{
    return addr & ~(EMU_PAGE_BYTES - 1);
}

/* The address, or length, up to a multiple of the page. Past emu_page_down(UINT64_MAX) it wraps to 0. */
static inline uint64_t emu_page_up(uint64_t addr)
{
    return emu_page_down(addr + EMU_PAGE_BYTES - 1);
}

/* What the NICs of a machine are to programs. The numbers are those of gni_nic_device_t. */
enum emu_device {
    EMU_DEVICE_GEMINI = 0,
    EMU_DEVICE_ARIES = 1,
};

/*
 * Translation entries of a Gemini: of the memory relocation table, a block each (the huge page that programs there ask
 * for), and of the GART, a page each. How many there are is our choice: the source has no number, and more than a
 * program of the time could fill.
 */
#define EMU_MRT_ENTRIES     65536u
#define EMU_MRT_BLOCK_BYTES (2ull << 20)
#define EMU_GART_ENTRIES    524288u

/* Memory domain handles per node: 12 bits in a memory handle (spec/ugni.md Appendix B). Index 0 is never used. */
#define EMU_MDH_COUNT         4096u
/*
 * Memory domains of one job may share a handle number; address tells them apart. The number of a memory domain is its
 * MDH plus EMU_MDH_COUNT times its turn among the sharers. Turn (3 bits) and generation (11) fill 14 spare bits of the
 * handle; generation 0 means "not told" (rebuilt handles), and so is the turn then.
 */
#define EMU_MDH_SHARERS       8u
#define EMU_MD_COUNT          (EMU_MDH_COUNT * EMU_MDH_SHARERS)
#define EMU_MD_GENERATION_MAX 0x7ffu

/* Entries of the network translation table of a host's device; addresses that one entry may cover. */
#define EMU_NTT_ENTRIES         8192u
#define EMU_NTT_GRANULARITY_MAX 128u

/* Ports in one domain on one host; node numbers are 18 bits wide (spec/machines.md 2.3). */
#define EMU_PORTS_MAX 4096u
#define EMU_NID_MAX   0x3ffffu
#define EMU_NID_NONE  UINT32_MAX

/* Completion queues of one port. */
#define EMU_CQS_MAX 1024u
#define EMU_CQ_NONE UINT32_MAX

/* Completion channels of one port. */
#define EMU_CHANNELS_MAX 64u
#define EMU_CHANNEL_NONE UINT32_MAX

/*
 * Space file of a process: a sparse memfd in which every page lies at the offset of its address in that process. Pages
 * get there when the client maps it over an address range. Sealed against any change of size.
 */
#define EMU_SPACE_BYTES (1ull << 47)

/*
 * Files of a domain on one host: mapped shared by a program itself, and registered by it. A number of one in use
 * carries its place in the table in the lower bits and a turn in the upper ones; it is never 0.
 */
#define EMU_FILES_MAX 1024u

/* Largest datagram payload (spec/ugni.md 2.17). */
#define EMU_DATAGRAM_MAX 128u

#endif
