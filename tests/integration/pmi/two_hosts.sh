#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run a program on two pretended hosts. Use: two_hosts.sh HOSTS RANKS PROGRAM, with HOSTS as for mpirun -host.
# Exit status 77 (skipped) where host names cannot be pretended.

here=$(dirname "$0")
"$here/fake_host.sh" --probe || exit 77
exports=
for name in EMUNIC_NIDS EMUNIC_PMI_PERMUTE; do
    eval "value=\$$name"
    [ -n "$value" ] && exports="$exports -x $name"
done
for name in $(env | sed -n 's/^\(PMI_CHECK_[A-Z]*\)=.*/\1/p'); do
    exports="$exports -x $name"
done
exec mpirun --mca plm_rsh_agent "$here/fake_host.sh" --oversubscribe $exports -host "$1" -n "$2" "$3"
