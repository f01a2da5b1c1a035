#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An emunic of root that serves another user: conformance programs of uGNI as that user, with all memory touched by
# movers. `test_movers.sh EMUNIC FOLDER-OF-PROGRAMS`
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

programs=${2:?usage: $0 EMUNIC FOLDER}
user=65534

if [ "$(id -u)" != 0 ]; then
    echo '1..0 # SKIP only root serves other users'
    exit 0
fi
if ! setpriv --reuid "$user" --regid "$user" --clear-groups test -x "$programs/conformance-job-put"; then
    echo "1..0 # SKIP another user cannot execute what is in $programs"
    exit 0
fi

# passes NAME: the program of that name, as the user, on an emunic of root.
passes() {
    start_server "s-$id" --machine aries:groups=2 --domain "200:0x1234:$user" --datapath routed
    setpriv --reuid "$user" --regid "$user" --clear-groups \
        env HOME="$dir" EMUNIC_SERVER="s-$id" EMUNIC_MEMORY=cma PMI_GNI_PTAG=200 PMI_GNI_COOKIE=0x1234 \
        "$programs/conformance-job-$1" >"$dir/out" 2>&1
    status=$?
    [ "$status" -eq 0 ] || bad "$1 ends with $status: $(grep -m 3 -e 'ERROR' -e 'gx:' "$dir/out")"
    grep -q '  OK ' "$dir/out" || bad "$1 has run no test"
    kill -TERM "$serve_pid"
    wait "$serve_pid"
    status=$?
    expect_status 0
    expect_nothing_left
}

for name in put get amo chain memory smsg sync_flag threads; do
    eval "test_programs_of_another_user_pass_$name() { passes $name; }"
done

run_tests programs_of_another_user_pass_{put,get,amo,chain,memory,smsg,sync_flag,threads}
