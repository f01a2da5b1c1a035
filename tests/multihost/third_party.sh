#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A case of tests/thirdparty with its ranks on two hosts.
#
#   third_party.sh BUILD_DIR EMUNIC CLUSTER LIBRARY CASE     CLUSTER: cluster.py; LIBRARY: ucx or openmpi
#
# UCX's cases are judged as on one host (thirdparty/ucx/run_case.sh). Of Open MPI's the check program alone judges: counters
# of several hosts are not collected.
#
# Exit status: 0 passed, 1 failed, 77 the library is not built, or no namespaces here.
set -u -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 1
emunic=$(realpath "$2")
cluster=$3
library=$4
case_name=$5

work=$build/thirdparty/$library
[ -f "$work/stamp" ] || { echo "$library is not built in $work (test $library-build)" >&2; exit 77; }
said=$("$cluster" -n 2 -- echo they are there 2>&1)
[ "$said" = "they are there" ] || { echo "no hosts in namespaces here: ${said#*SKIP }" >&2; exit 77; }

if [ "$library" = openmpi ]; then
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=ugni,self
    [ "$case_name" != onesided ] || export OMPI_MCA_osc=rdma
    "$cluster" -n 2 -- "$emunic" run -q --hosts h0,h1 -n 4 --ppn 1 -- "$work/install/bin/check_$case_name" |
        grep -E "^check_$case_name: ok, "
    exit
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
# `emunic run OPTION... -- COMMAND...` of the case, on two hosts.
cat >"$folder/emunic" <<WRAPPER
#!/bin/sh
shift
exec "$cluster" -n 2 -- "$emunic" run -q --hosts h0,h1 "\$@"
WRAPPER
chmod +x "$folder/emunic"
CASE_SERVER=10.99.8.1 "$here/../thirdparty/$library/run_case.sh" "$build" "$folder/emunic" "$case_name"
