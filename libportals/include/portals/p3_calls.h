/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3_calls.h: the calls that both dialects of Portals 3.3 share. Included by <portals/portals3.h> (CRAY) and
 * <portals3.h> (REF) after their types. Not to be included by itself.
 *
 * Reading the comments (more in p3_types.h)
 *
 *   spec/portals3.md  is installed as share/doc/emunic/spec/portals3.md.
 *   Order of checks  NULL where something is to be stored: PTL_SEGV; PtlInit() missing: PTL_NO_INIT; no such object:
 *                    the code of its kind; everything else. After an error nothing has happened and output arguments
 *                    are unchanged, unless the comment says otherwise. Only NULL is a bad pointer.
 *   Threads: any     any thread at any time. No call waits for another process, but PtlEQWait() and PtlEQPoll().
 *   Progress         matching, delivery, replies, acknowledgements and automatic unlinking need no call of the target.
 *   Ownership        descriptors, ids, limits and arrays of parts are copied. Memory that a descriptor describes is the
 *                    program's, and must exist as long as the descriptor or an operation on it; memory that does not
 *                    gives PTL_NI_FAIL in the END events.
 *   Order            requests of one process to another are matched in the order of the calls; each is delivered
 *                    completely before the next one of the same source is matched. Nothing is promised between
 *                    different sources.
 *   fork()           a child has no interface: it starts with PtlInit(). What its parent opened stays its parent's. A
 *                    child of a process without an open interface is initialised if its parent is.
 */
#ifndef PORTALS_P3_CALLS_H
#define PORTALS_P3_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Library
 */

/**
 * Begin. Again: counts for nothing, one PtlFini() ends the library however often this was called.
 *
 * @param[out] max_interfaces  Interfaces that can be open at a time. Stored by every call.
 * @retval PTL_OK    Begun.
 * @retval PTL_SEGV  max_interfaces is NULL.
 * @note Never PTL_FAIL: nothing is started before the first PtlNIInit().
 * @note Threads: any. Any time.
 * @note Source: spec/portals3.md 4.1.
 */
int PtlInit(int *max_interfaces);

/**
 * End: closes all interfaces as PtlNIFini(). Without effect if the library was not begun; safe in an exit handler.
 * PtlInit() may be called again.
 *
 * @note Threads: any, with no other call under way.
 * @note Source: spec/portals3.md 4.1.
 */
void PtlFini(void);

/*
 * Interfaces
 */

/**
 * Open an interface of this process: a portal table, an access control table, status registers, an address.
 *
 * The interface belongs to the job that the process was started in (`emunic run`); its node id is the emulated node's
 * number. Again while it is open: the handle and the limits of the one that is open are stored, pid and desired are
 * ignored.
 *
 * @param[in]  iface    CRAY: any of the SeaStar names, which mean one interface; REF: PTL_IFACE_UTCP0 to 3 or
 *                      PTL_IFACE_DEFAULT, which is the first of these four.
 * @param[in]  pid      Wanted process id, or PTL_PID_ANY: in a job the number of the rank if it is free, else a free
 *                      one; with REF the one of the pid map if there is a map.
 * @param[in]  desired  Wanted limits, or NULL for the most.
 * @param[out] actual   Granted limits, or NULL.
 * @param[out] ni       Handle. After an error PTL_INVALID_HANDLE, except PTL_IFACE_DUP.
 * @retval PTL_OK             Open. REF: also if it was before.
 * @retval PTL_IFACE_DUP      CRAY only: it was open before. *ni and *actual are stored.
 * @retval PTL_NO_INIT        The library is not initialised.
 * @retval PTL_IFACE_INVALID  No such interface.
 * @retval PTL_PID_INVALID    The pid is taken on this node. REF: it is not the one of the pid map.
 * @retval PTL_NO_SPACE       No memory, no file descriptors, or no interface left.
 * @retval PTL_FAIL           Not started by a launcher, or emunic has gone: one line on stderr tells which. REF:
 * the node
 *                            is not the one of the nid map.
 * @retval PTL_SEGV           ni is NULL.
 * @note Never PTL_PID_IN_USE: PTL_PID_INVALID says it, which is what programs test.
 * @note Threads: any. May wait for emunic.
 * @note Source: spec/portals3.md 4.2, 7.2. With CRAY the first call gives PTL_OK although a launcher might have opened
 *       it.
 */
int PtlNIInit(ptl_interface_t iface, ptl_pid_t pid, ptl_ni_limits_t *desired, ptl_ni_limits_t *actual,
              ptl_handle_ni_t *ni);

/**
 * Close an interface, with all its entries, descriptors and queues. What arrives later is dropped; what is under way
 * gives no more events. A thread that waits for one of its queues: undefined.
 *
 * @param[in] ni  Interface.
 * @retval PTL_OK          Closed.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface, or no longer one.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.2.
 */
int PtlNIFini(ptl_handle_ni_t ni);

/**
 * Read a status register.
 *
 * @param[in]  ni      Interface.
 * @param[in]  reg     PTL_SR_DROP_COUNT and what p3_types.h lists; PTL_SR_MLIST_LEN(i), PTL_SR_MLIST_MAX(i).
 * @param[out] status  Its value. Discarded acknowledgements are not among the drops (Q11).
 * @retval PTL_OK                Stored.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_NI_INVALID        ni is no interface.
 * @retval PTL_SR_INDEX_INVALID  No such register.
 * @retval PTL_SEGV              status is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 1.9, 2.9, 4.2.
 */
int PtlNIStatus(ptl_handle_ni_t ni, ptl_sr_index_t reg, ptl_sr_value_t *status);

/**
 * How far is a process? Hops between routers of the emulated machine plus one; 0 for the own node (Q15).
 *
 * @param[in]  ni        Interface.
 * @param[in]  process   Process; only its node is looked at.
 * @param[out] distance  Smaller is closer. ULONG_MAX with PTL_PROCESS_INVALID.
 * @retval PTL_OK               Stored.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_NI_INVALID       ni is no interface.
 * @retval PTL_PROCESS_INVALID  The job has no such node, or the id has a wildcard.
 * @retval PTL_SEGV             distance is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.2.
 */
int PtlNIDist(ptl_handle_ni_t ni, ptl_process_id_t process, unsigned long *distance);

/**
 * The interface that an object belongs to. An interface belongs to itself.
 *
 * @param[in]  handle  Of an interface, match entry, descriptor or queue.
 * @param[out] ni      Its interface.
 * @retval PTL_OK              Stored.
 * @retval PTL_NO_INIT         The library is not initialised.
 * @retval PTL_HANDLE_INVALID  No such object.
 * @retval PTL_SEGV            ni is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.2.
 */
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni);

/*
 * Identification
 */

/**
 * User id of an interface: the effective one of the process when it was opened.
 *
 * @param[in]  ni   Interface.
 * @param[out] uid  The id.
 * @retval PTL_OK          Stored.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_SEGV        uid is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.3.
 */
int PtlGetUid(ptl_handle_ni_t ni, ptl_uid_t *uid);

/**
 * Address of an interface.
 *
 * @param[in]  ni  Interface.
 * @param[out] id  The id; padding is zero.
 * @retval PTL_OK          Stored.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_SEGV        id is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.3.
 */
int PtlGetId(ptl_handle_ni_t ni, ptl_process_id_t *id);

/**
 * Job id of an interface. REF: what PtlSetJID() or PTL_MY_JID said, else the pid of the first interface. CRAY: a
 * number that all processes of the job share.
 *
 * @param[in]  ni   Interface.
 * @param[out] jid  The id.
 * @retval PTL_OK          Stored.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_SEGV        jid is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 1.3, 4.3.
 */
int PtlGetJid(ptl_handle_ni_t ni, ptl_jid_t *jid);

/*
 * Match entries
 */

/**
 * New entry at the head or the tail of a match list. It matches nothing before a descriptor is attached, and keeps its
 * place.
 *
 * @param[in]  ni           Interface.
 * @param[in]  pt           Portal index.
 * @param[in]  match_id     Who may match; nid and pid may each be ANY. Never checked against reality.
 * @param[in]  match_bits   Bits to match.
 * @param[in]  ignore_bits  Bits that need not match.
 * @param[in]  unlink       PTL_UNLINK: the entry goes when its descriptor is unlinked, by itself or by PtlMDUnlink().
 * @param[in]  position     PTL_INS_BEFORE: head; PTL_INS_AFTER: tail.
 * @param[out] me           Handle.
 * @retval PTL_OK                Made.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_NI_INVALID        ni is no interface.
 * @retval PTL_PT_INDEX_INVALID  pt is beyond max_pt_index.
 * @retval PTL_ME_LIST_TOO_LONG  The list has max_me_list entries.
 * @retval PTL_NO_SPACE          max_mes are in use.
 * @retval PTL_SEGV              me is NULL.
 * @note Never PTL_PROCESS_INVALID: any match_id might be legal.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.4.
 */
int PtlMEAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me);

/**
 * New entry at a portal index that nobody uses: the lowest that was never used since the interface was opened, or if
 * there is none the lowest whose list is empty (Q16).
 *
 * @param[in]  ni           Interface.
 * @param[out] pt           The index.
 * @param[in]  match_id     Who may match.
 * @param[in]  match_bits   Bits to match.
 * @param[in]  ignore_bits  Bits that need not match.
 * @param[in]  unlink       As PtlMEAttach().
 * @param[out] me           Handle.
 * @retval PTL_OK          Made.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_PT_FULL     Every list has entries.
 * @retval PTL_NO_SPACE    max_mes are in use.
 * @retval PTL_SEGV        pt or me is NULL.
 * @note Never PTL_PROCESS_INVALID: any match_id might be legal.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.4.
 */
int PtlMEAttachAny(ptl_handle_ni_t ni, ptl_pt_index_t *pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                   ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_handle_me_t *me);

/**
 * New entry right before or after another one.
 *
 * @param[in]  base         That one.
 * @param[in]  match_id     Who may match.
 * @param[in]  match_bits   Bits to match.
 * @param[in]  ignore_bits  Bits that need not match.
 * @param[in]  unlink       As PtlMEAttach().
 * @param[in]  position     Before or after base.
 * @param[out] me           Handle.
 * @retval PTL_OK                Made.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_ME_INVALID        base is no entry, or no longer one.
 * @retval PTL_ME_LIST_TOO_LONG  The list has max_me_list entries.
 * @retval PTL_NO_SPACE          max_mes are in use.
 * @retval PTL_SEGV              me is NULL.
 * @note Never PTL_PROCESS_INVALID: any match_id might be legal.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.4.
 */
int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me);

/**
 * Remove an entry, and its descriptor whatever that one's unlink flag (Q10). No event, but with CRAY PTL_EVENT_UNLINK
 * for a descriptor with PTL_MD_EVENT_MANUAL_UNLINK_ENABLE.
 *
 * @param[in] me  Entry.
 * @retval PTL_OK          Gone; handle invalid.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_ME_INVALID  No entry, or no longer one: it may have gone with its descriptor.
 * @retval PTL_ME_IN_USE   Its descriptor has pending operations; nothing was done. They end without any call of the
 *                         program.
 * @note Threads: any. Waits for pending operations for about a millisecond, as PtlMDUnlink() does.
 * @note Source: spec/portals3.md 4.4.
 */
int PtlMEUnlink(ptl_handle_me_t me);

/*
 * Memory descriptors
 */

/**
 * New descriptor in a match entry: requests may hit it from now on. It may be the local side of operations as well.
 *
 * @param[in]  me         Entry.
 * @param[in]  md         Contents; copied, with its parts. The offset begins at 0.
 * @param[in]  unlink_op  PTL_UNLINK: unlinked when an operation ends, it is inactive and none is pending. One that is
 *                        made inactive by its threshold waits for PtlMDUpdate().
 * @param[out] mdh        Handle.
 * @retval PTL_OK          Made.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_ME_INVALID  me is no entry, or no longer one.
 * @retval PTL_ME_IN_USE   It has a descriptor.
 * @retval PTL_MD_ILLEGAL  start is NULL and there are bytes; memory wraps around; more parts than max_md_iovecs; an
 *                         option that no dialect has; the queue is another interface's.
 * @retval PTL_EQ_INVALID  md.eq_handle is no queue. PTL_EQ_NONE is fine.
 * @retval PTL_NO_SPACE    max_mds are in use.
 * @retval PTL_SEGV        mdh is NULL.
 * @note Never PTL_VAL_FAILED: no memory is pinned; memory that is not there shows as ni_fail_type.
 * @note Threads: any.
 * @note Source: spec/portals3.md 1.5, 1.7, 4.5.
 */
int PtlMDAttach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t *mdh);

/**
 * New descriptor that no request can hit: the local side of operations.
 *
 * @param[in]  ni         Interface.
 * @param[in]  md         Contents; copied, with its parts.
 * @param[in]  unlink_op  As PtlMDAttach().
 * @param[out] mdh        Handle.
 * @retval PTL_OK          Made.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_MD_ILLEGAL  As PtlMDAttach().
 * @retval PTL_EQ_INVALID  md.eq_handle is no queue.
 * @retval PTL_NO_SPACE    max_mds are in use.
 * @retval PTL_SEGV        mdh is NULL.
 * @note Never PTL_VAL_FAILED: no memory is pinned.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.5.
 */
int PtlMDBind(ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t *mdh);

/**
 * Remove a descriptor; its entry becomes empty, or goes too if it was made with PTL_UNLINK. No event, but with CRAY
 * PTL_EVENT_UNLINK if it has PTL_MD_EVENT_MANUAL_UNLINK_ENABLE. An acknowledgement or a reply that is awaited does not
 * hinder, and is discarded when it comes. With CRAY and PTL_MD_LUSTRE_COMPLETION_SEMANTICS a busy descriptor is
 * removed when its last operation ends: that one's last event has `unlinked` 1, and PTL_OK is returned at once.
 *
 * @param[in] mdh  Descriptor.
 * @retval PTL_OK          Gone; handle invalid.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_MD_INVALID  No descriptor, or no longer one: it may have been unlinked automatically.
 * @retval PTL_MD_IN_USE   Pending operations: data being sent or received. They end without any call of the program.
 * @note Threads: any. Waits for pending operations for about a millisecond: one that is over at its target, as the
 *       program may have heard from there, is over here, too. For others, which may take longer, it does not (Q22).
 * @note Source: spec/portals3.md 4.5, 5.4.
 */
int PtlMDUnlink(ptl_handle_md_t mdh);

/**
 * Look at a descriptor, and replace its contents if nothing happened: one step for requests and other threads.
 *
 * With a testq the update is refused if that queue has an event, if an operation is under way whose events will go
 * there, or if the descriptor has pending operations; whoever waits for the queue after PTL_MD_NO_UPDATE gets an
 * event. Flags, entry and handle stay; the offset becomes 0; it is active if the threshold is not 0. Operations under
 * way keep the old memory (Q24).
 *
 * @param[in]     mdh     Descriptor.
 * @param[in,out] old_md  NULL, or where its state is stored, with the threshold that is left; also with
 *                        PTL_MD_NO_UPDATE. With PTL_MD_IOVEC set, `start` an array and `length` its size, parts are
 *                        copied into the array.
 * @param[in]     new_md  NULL: only look. Else new contents; copied.
 * @param[in]     testq   Queue that has to be quiet, or PTL_EQ_NONE: always.
 * @retval PTL_OK            Replaced, or looked at.
 * @retval PTL_NO_INIT       The library is not initialised.
 * @retval PTL_MD_INVALID    mdh is no descriptor, or no longer one.
 * @retval PTL_EQ_INVALID    testq, or new_md->eq_handle, is no queue.
 * @retval PTL_MD_ILLEGAL    As PtlMDAttach(), for new_md.
 * @retval PTL_MD_NO_UPDATE  See above; nothing was replaced.
 * @note Never PTL_NO_SPACE: a descriptor has room for its parts.
 * @note Never PTL_SEGV: both pointers may be NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.5.
 */
int PtlMDUpdate(ptl_handle_md_t mdh, ptl_md_t *old_md, ptl_md_t *new_md, ptl_handle_eq_t testq);

/**
 * PtlMEInsert() and PtlMDAttach() in one if the queue to test is quiet (PtlMDUpdate()). Otherwise nothing exists: no
 * entry, no descriptor.
 *
 * @param[in]  ni           Interface.
 * @param[in]  base         Entry to insert beside.
 * @param[in]  match_id     Who may match.
 * @param[in]  match_bits   Bits to match.
 * @param[in]  ignore_bits  Bits that need not match.
 * @param[in]  me_unlink    As PtlMEAttach().
 * @param[in]  pos          Before or after base.
 * @param[in]  md           Descriptor.
 * @param[in]  md_unlink    As PtlMDAttach().
 * @param[out] me           Handle of the entry.
 * @param[out] mdh          Handle of the descriptor.
 * @param[in]  testq        Queue that has to be quiet, or PTL_EQ_NONE.
 * @retval PTL_OK                Both exist.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_NI_INVALID        ni is no interface.
 * @retval PTL_ME_INVALID        base is no entry of ni, or no longer one.
 * @retval PTL_ME_LIST_TOO_LONG  The list has max_me_list entries.
 * @retval PTL_MD_ILLEGAL        As PtlMDAttach().
 * @retval PTL_EQ_INVALID        testq or md.eq_handle is no queue.
 * @retval PTL_MD_NO_UPDATE      The queue has events, or will have.
 * @retval PTL_NO_SPACE          max_mes or max_mds are in use.
 * @retval PTL_SEGV              me or mdh is NULL.
 * @note Never PTL_PROCESS_INVALID: any match_id might be legal.
 * @note Never PTL_ME_IN_USE: the entry is new.
 * @note Never PTL_VAL_FAILED: no memory is pinned.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.11. The original of REF has the entry point only; here it works in both dialects.
 */
int PtlMEMDPost(ptl_handle_ni_t ni, ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t pos, ptl_md_t md,
                ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *mdh, ptl_handle_eq_t testq);

/*
 * Event queues
 */

/**
 * New event queue. When it is full the oldest event is overwritten; messages, thresholds and acknowledgements are not
 * affected.
 *
 * @param[in]  ni       Interface.
 * @param[in]  count    Events that must fit; rounded up to a power of two. For fewer than 64 there is room for 512: who
 *                      asks for a few has no flow control that counts them. 0: nothing is made, *eq is PTL_EQ_NONE
 *                      (Q9).
 * @param[in]  handler  NULL, or called with each event when it is taken out, before the call that takes it returns
 *                      (Q8). It may make calls that do not block.
 * @param[out] eq       Handle.
 * @retval PTL_OK          Made.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_NO_SPACE    max_eqs are in use, or no memory for that many events.
 * @retval PTL_SEGV        eq is NULL.
 * @note Never PTL_INV_EQ_SIZE: see count.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.6, 5.6.
 */
int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, void (*handler)(ptl_event_t *event), ptl_handle_eq_t *eq);

/**
 * Remove a queue. Later events of descriptors that name it vanish. A thread that waits for it: undefined.
 *
 * @param[in] eq  Queue.
 * @retval PTL_OK          Gone; handle invalid.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_EQ_INVALID  No queue, or no longer one.
 * @note Never PTL_EQ_IN_USE: a queue can be freed at any time.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.6.
 */
int PtlEQFree(ptl_handle_eq_t eq);

/**
 * Take the oldest event off a queue. Never waits.
 *
 * @param[in]  eq     Queue.
 * @param[out] event  The event; untouched if there is none.
 * @retval PTL_OK          Taken.
 * @retval PTL_EQ_DROPPED  Taken; earlier ones were lost. Told once for each loss.
 * @retval PTL_EQ_EMPTY    There is none.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_EQ_INVALID  eq is no queue; or the queue is empty and emunic has gone, so nothing will come.
 * @retval PTL_SEGV        event is NULL.
 * @note Threads: any. An event goes to one thread.
 * @note Source: spec/portals3.md 4.6.
 */
int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event);

/**
 * PtlEQGet() that waits for an event.
 *
 * @param[in]  eq     Queue.
 * @param[out] event  The event.
 * @retval PTL_OK          Taken.
 * @retval PTL_EQ_DROPPED  Taken; earlier ones were lost.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_EQ_INVALID  eq is no queue; or the queue is empty and emunic has gone, so nothing will come.
 * @retval PTL_SEGV        event is NULL.
 * @note Never PTL_EQ_EMPTY: it waits.
 * @note Threads: any. Others may make calls meanwhile; of several that wait, one gets an event.
 * @note Source: spec/portals3.md 4.6.
 */
int PtlEQWait(ptl_handle_eq_t eq, ptl_event_t *event);

/**
 * Take an event off the first queue of an array that has one.
 *
 * @param[in]  eqs      Queues of one interface. Never written.
 * @param[in]  size     How many.
 * @param[in]  timeout  Milliseconds to wait for one if there is none; 0: just look; PTL_TIME_FOREVER.
 * @param[out] event    The event; untouched if there is none.
 * @param[out] which    Position of its queue; of the bad handle with PTL_EQ_INVALID because of a handle.
 * @retval PTL_OK          Taken.
 * @retval PTL_EQ_DROPPED  Taken; earlier ones of that queue were lost.
 * @retval PTL_EQ_EMPTY    None within the time, which has elapsed.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_EQ_INVALID  A handle is no queue, or another interface's; size is below 1; or all queues are empty and
 *                         emunic has gone.
 * @retval PTL_SEGV        eqs, event or which is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.6.
 */
int PtlEQPoll(ptl_handle_eq_t *eqs, int size, uint32_t timeout, ptl_event_t *event, int *which);

/*
 * Access control
 */

/**
 * Replace an entry of the access control table. A request names an entry; who made it and the portal index must be
 * what the entry says. All entries begin with: any process of the own user id, any job, any portal. CRAY stores
 * entries and lets everybody in.
 *
 * @param[in] ni        Interface.
 * @param[in] ac        Index of the entry.
 * @param[in] match_id  Process; nid and pid may each be ANY.
 * @param[in] uid       User, or PTL_UID_ANY.
 * @param[in] jid       Job, or PTL_JID_ANY.
 * @param[in] pt        Portal index, or PTL_PT_INDEX_ANY.
 * @retval PTL_OK                Replaced, for requests that are matched from now on.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_NI_INVALID        ni is no interface.
 * @retval PTL_AC_INDEX_INVALID  ac is beyond max_ac_index.
 * @retval PTL_PT_INDEX_INVALID  pt is neither ANY nor up to max_pt_index.
 * @note Never PTL_PROCESS_INVALID: any match_id might be legal.
 * @note Threads: any.
 * @note Source: spec/portals3.md 1.8, 4.8. With CRAY the argument jid is unconfirmed (Q12).
 */
int PtlACEntry(ptl_handle_ni_t ni, ptl_ac_index_t ac, ptl_process_id_t match_id, ptl_uid_t uid, ptl_jid_t jid,
               ptl_pt_index_t pt);

/*
 * Data movement
 */

/**
 * Send what a descriptor describes. Nothing tells the initiator of a request that is dropped at the target: an
 * acknowledgement says that a descriptor there took it, and how much.
 *
 * @param[in] mdh            Local descriptor, bound or attached; its own OP, MANAGE_REMOTE, TRUNCATE and MAX_SIZE
 *                           options and its offset play no part.
 * @param[in] ack            PTL_ACK_REQ, or none: PTL_NOACK_REQ (CRAY), PTL_NO_ACK_REQ (REF).
 * @param[in] target         Process. One that is not there is no error of the call.
 * @param[in] pt             Its portal index.
 * @param[in] ac             Its access control entry; CRAY does not look at it, but drops what is beyond the table.
 * @param[in] match_bits     Of the request.
 * @param[in] remote_offset  For descriptors with PTL_MD_MANAGE_REMOTE; echoed in events.
 * @param[in] hdr_data       Told in the target's events.
 * @retval PTL_OK               Accepted.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_MD_INVALID       No descriptor, or inactive (Q3).
 * @retval PTL_PROCESS_INVALID  target has a wildcard.
 * @note Never PTL_NO_SPACE: operations are queued.
 * @note Threads: any. Never waits for the target. The memory must not change before SEND_END, which is in the queue
 *       before the target has PUT_END, and so before any answer.
 * @note Source: spec/portals3.md 1.10, 4.9.
 */
int PtlPut(ptl_handle_md_t mdh, ptl_ack_req_t ack, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/**
 * PtlPut() of a part of a descriptor.
 *
 * @param[in] mdh            Local descriptor.
 * @param[in] local_offset   Bytes from its start.
 * @param[in] length         Bytes.
 * @param[in] ack            As PtlPut().
 * @param[in] target         Process.
 * @param[in] pt             Its portal index.
 * @param[in] ac             Its access control entry.
 * @param[in] match_bits     Of the request.
 * @param[in] remote_offset  For descriptors with PTL_MD_MANAGE_REMOTE.
 * @param[in] hdr_data       Told in the target's events.
 * @retval PTL_OK               Accepted.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_MD_INVALID       No descriptor, or inactive.
 * @retval PTL_MD_ILLEGAL       The part is not inside it.
 * @retval PTL_PROCESS_INVALID  target has a wildcard.
 * @note Never PTL_NO_SPACE: operations are queued.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.9.
 */
int PtlPutRegion(ptl_handle_md_t mdh, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack,
                 ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t match_bits,
                 ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/**
 * Fetch as much as a descriptor describes. A request that is dropped at the target gives no reply and no event.
 *
 * @param[in] mdh            Local descriptor; gets the data from its start on.
 * @param[in] target         Process.
 * @param[in] pt             Its portal index.
 * @param[in] ac             Its access control entry.
 * @param[in] match_bits     Of the request.
 * @param[in] remote_offset  For descriptors with PTL_MD_MANAGE_REMOTE.
 * @retval PTL_OK               Accepted.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_MD_INVALID       No descriptor, or inactive.
 * @retval PTL_PROCESS_INVALID  target has a wildcard.
 * @note Never PTL_NO_SPACE: operations are queued.
 * @note Threads: any. CRAY counts two operations (SEND and REPLY), REF one; with CRAY a descriptor that becomes
 *       inactive by the sending still takes the reply, and is unlinked after that.
 * @note Source: spec/portals3.md 4.9, 5.2.
 */
int PtlGet(ptl_handle_md_t mdh, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset);

/**
 * PtlGet() into a part of a descriptor.
 *
 * @param[in] mdh            Local descriptor.
 * @param[in] local_offset   Bytes from its start.
 * @param[in] length         Bytes.
 * @param[in] target         Process.
 * @param[in] pt             Its portal index.
 * @param[in] ac             Its access control entry.
 * @param[in] match_bits     Of the request.
 * @param[in] remote_offset  For descriptors with PTL_MD_MANAGE_REMOTE.
 * @retval PTL_OK               Accepted.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_MD_INVALID       No descriptor, or inactive.
 * @retval PTL_MD_ILLEGAL       The part is not inside it.
 * @retval PTL_PROCESS_INVALID  target has a wildcard.
 * @note Never PTL_NO_SPACE: operations are queued.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.9.
 */
int PtlGetRegion(ptl_handle_md_t mdh, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target,
                 ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset);

/**
 * Swap: what put_md describes goes to the target, what was there comes to get_md. Atomic towards other swaps in the
 * same target process, not towards its loads and stores nor puts. The descriptor there needs PTL_MD_OP_PUT and
 * PTL_MD_OP_GET.
 *
 * @param[in] get_md         Gets the old contents, from its start on.
 * @param[in] put_md         Has the new contents; at most max_getput_md bytes. May be get_md.
 * @param[in] target         Process.
 * @param[in] pt             Its portal index.
 * @param[in] ac             Its access control entry.
 * @param[in] match_bits     Of the request.
 * @param[in] remote_offset  For descriptors with PTL_MD_MANAGE_REMOTE.
 * @param[in] hdr_data       Told in the target's events (Q13).
 * @retval PTL_OK               Accepted.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_MD_INVALID       One of the two is no descriptor, or inactive.
 * @retval PTL_MD_ILLEGAL       Of two interfaces; put_md is longer than max_getput_md, or than get_md.
 * @retval PTL_PROCESS_INVALID  target has a wildcard.
 * @note Never PTL_NO_SPACE: operations are queued.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.9.
 */
int PtlGetPut(ptl_handle_md_t get_md, ptl_handle_md_t put_md, ptl_process_id_t target, ptl_pt_index_t pt,
              ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/*
 * Debugging
 */

/**
 * Choose what is traced to standard error.
 *
 * @param[in] ni    Interface, or PTL_INVALID_HANDLE for the library; anything else without effect.
 * @param[in] mask  PTL_DBG_... bits.
 * @return The mask before.
 * @note Threads: any. Any time.
 * @note Source: spec/portals3.md 2.10, 4.10.
 */
unsigned int PtlNIDebug(ptl_handle_ni_t ni, unsigned int mask);

/**
 * Simulate the failure of a node: messages from this interface to it, and from it to this interface, vanish. Sends
 * complete locally; no acknowledgement and no reply comes. PtlNIFailNid() is another name.
 *
 * @param[in] ni     Interface.
 * @param[in] nid    Node, or PTL_NID_ANY for all.
 * @param[in] count  How many messages; (unsigned)-1: until further notice; 0: none any more.
 * @retval PTL_OK          In force.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_NO_SPACE    Eight nodes fail already.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.10 (Lustre's).
 */
int PtlFailNid(ptl_handle_ni_t ni, ptl_nid_t nid, unsigned count);
int PtlNIFailNid(ptl_handle_ni_t ni, ptl_nid_t nid, unsigned count);

/**
 * Ask for the loopback of messages to oneself. Without effect on them: they never leave the interface; the value is
 * kept.
 *
 * @param[in]     ni       Interface.
 * @param[in]     set      Nonzero: *enabled is the new value; 0: it is stored there.
 * @param[in,out] enabled  The value; 1 at the beginning.
 * @retval PTL_OK          Done.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_SEGV        enabled is NULL.
 * @note Threads: any.
 * @note Source: spec/portals3.md 4.10 (Lustre's); only the prototype is known.
 */
int PtlLoopback(ptl_handle_ni_t ni, int set, int *enabled);

/**
 * Write a handle as text, as snprintf() does. Without effect if s is NULL or len below 1.
 *
 * @param[out] s    Text, NUL-terminated.
 * @param[in]  len  Bytes there.
 * @param[in]  h    Handle of any kind, valid or not.
 * @note Threads: any. Any time.
 * @note Source: spec/portals3.md 4.10 (Lustre's).
 */
void PtlSnprintHandle(char *s, int len, ptl_handle_any_t h);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* PORTALS_P3_CALLS_H */
