/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules about targets on other hosts: whose they are, and killing them. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_FAULTS_FAULT_HOSTS_H
#define EMUNIC_DAEMON_FAULTS_FAULT_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

struct emu_cmd;
struct emu_port_end;
struct emu_server;
struct emu_list;

/* What a port wants to know of the command at the head of its ring. */
struct emu_fault_question {
    uint64_t token;
    uint64_t place; /* of the command in the ring */
    uint32_t host;
    bool is_asked;
    bool is_answered;
    bool has_owner;
    uint32_t instance_id;
};

/* The instance that the command's target belongs to, on another host. False: not known yet. */
bool emu_fault_ask_owner(struct emu_port_end *port, const struct emu_cmd *cmd, bool *has_owner_out,
                         uint32_t *instance_id_out);
/* Ends the process that the command's target belongs to, on another host. */
void emu_fault_kill_there(struct emu_port_end *port, const struct emu_cmd *cmd, uint32_t rule);

/* For the part. False: the list makes no sense. */
bool emu_fault_who(struct emu_server *server, uint32_t host, struct emu_list *list);
bool emu_fault_owner(struct emu_server *server, uint32_t host, struct emu_list *list);
bool emu_fault_kill(struct emu_server *server, uint32_t host, struct emu_list *list);
void emu_fault_host_down(struct emu_server *server, uint32_t host);

#endif
