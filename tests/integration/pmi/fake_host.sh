#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Remote shell for mpirun that stays on this machine: runs the command under another host name.
# Use: mpirun --mca plm_rsh_agent .../fake_host.sh -host nodea:2,nodeb:2 ...
# With --probe: exit 0 if that is possible here.

if [ "$(id -u)" = 0 ]; then
    as_host='unshare --uts'
else
    as_host='unshare --user --map-root-user --uts'
fi
if [ "$1" = --probe ]; then
    exec $as_host hostname probe 2>/dev/null
fi
while [ "${1#-}" != "$1" ]; do # options of ssh
    shift
done
host=$1
shift
exec $as_host sh -c 'hostname "$0" && exec sh -c "$1"' "$host" "$*"
