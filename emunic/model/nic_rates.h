/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates of a NIC and its host that follow from the parameters alone, without packets.
 */
#ifndef EMUNIC_MODEL_NIC_RATES_H
#define EMUNIC_MODEL_NIC_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/model/nic_model.h"

/* Payload through the host interface, each way, if one or both ways are busy; 10^6 bytes/s. 0: no limit. */
double emu_nic_interface_mbytes_per_s(const struct emu_nic_setup *setup, uint32_t packet_bytes, bool is_both_ways);

/* Rate of payload through the NIC, 10^6 bytes/s: nic.clock_mhz and nic.access_cycles, or host.packet_gap_ns. */
double emu_nic_packet_mbytes_per_s(const struct emu_nic_setup *setup);

/*
 * Atomic operations on the words of an array, random or one after another, as fast as the unit takes them: a cache of
 * nic.amo_cache_entries words and a translation cache of host.pte_entries pages; the least recently used goes.
 * Operations per second over n_operations, the caches full before.
 */
double emu_nic_amo_rate(const struct emu_nic_setup *setup, uint64_t n_words, uint64_t page_bytes, bool is_random,
                        uint64_t n_operations);

#endif
