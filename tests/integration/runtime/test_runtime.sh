#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The runtime libraries together: cray-environment.sh gives the flags, the program compiles and links with nothing else,
# and every rank of a job on three nodes finds itself. And what a configure script of a Portals program finds by linking
# works when it runs, with the flags of pkg-config.
#
#   test_runtime.sh BUILD_DIR EMUNIC SOURCE_DIR CC...
set -u -o pipefail
build=$1 emunic=$2 root=$3
shift 3
cc=("$@")

fail() { echo "test_runtime: $*" >&2; exit 1; }

dir=$(mktemp -d "$build/runtime.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export PKG_CONFIG_PATH=$build/meson-uninstalled
# shellcheck source=/dev/null
. "$root/mpi-shim/environment/cray-environment.sh"
for name in CRAY_PMI CRAY_UGNI CRAY_GNI_HEADERS CRAY_DMAPP CRAY_UDREG CRAY_RCA CRAY_ALPSLLI \
    CRAY_ALPSUTIL CRAY_PORTALS; do
    include=${name}_INCLUDE_OPTS
    link=${name}_POST_LINK_OPTS
    [ -n "${!include-}" ] || fail "$include is not set"
    [ "$name" = CRAY_GNI_HEADERS ] || [ -n "${!link-}" ] || fail "$link is not set"
done
for module in cray-pmi cray-ugni cray-dmapp cray-portals; do
    [[ :$PE_PKGCONFIG_LIBS: == *:$module:* ]] || fail "$module is not in PE_PKGCONFIG_LIBS: $PE_PKGCONFIG_LIBS"
done
[ "$CRAYPE_NETWORK_TARGET" = aries ] || fail "CRAYPE_NETWORK_TARGET"

# Flags are lists.
# shellcheck disable=SC2086
"${cc[@]}" -std=c17 -Wall -Wextra -Werror -o "$dir/runtime_rank" "$root/tests/integration/runtime/runtime_rank.c" \
    $CRAY_GNI_HEADERS_INCLUDE_OPTS $CRAY_PMI_INCLUDE_OPTS $CRAY_UDREG_INCLUDE_OPTS $CRAY_RCA_INCLUDE_OPTS \
    $CRAY_ALPSLLI_INCLUDE_OPTS $CRAY_ALPSUTIL_INCLUDE_OPTS \
    $CRAY_UGNI_POST_LINK_OPTS $CRAY_ALPSUTIL_POST_LINK_OPTS $CRAY_ALPSLLI_POST_LINK_OPTS $CRAY_RCA_POST_LINK_OPTS \
    $CRAY_UDREG_POST_LINK_OPTS $CRAY_PMI_POST_LINK_OPTS || fail "does not compile"

for ppn in 1 2; do
    timeout 60 "$emunic" run -n $((3 * ppn)) --ppn $ppn --place scatter -q -- "$dir/runtime_rank" >"$dir/out" ||
        fail "job with $ppn on a node failed"
    [ "$(sort "$dir/out" | uniq | wc -l)" -eq $((3 * ppn)) ] || { cat "$dir/out" >&2; fail "not every rank is well"; }
done

# links FUNCTION MODULE...: as autoconf's check for a function in libraries does it.
links() {
    echo "char $1(); int main(void) { return $1() != 0; }" >"$dir/conftest.c"
    # shellcheck disable=SC2046
    "${cc[@]}" -w -o "$dir/conftest" "$dir/conftest.c" $(pkg-config --libs "${@:2}") || fail "$1 does not link"
}

for module in cray-portals portals-ref; do
    for name in PMI_CNOS_Get_nidpid_map cnos_get_nidpid_map cnos_get_rank cnos_get_size cnos_get_nnodes cnos_barrier \
        cnos_barrier_init cnos_register_ptlid cnos_launcher cnos_shmem_size; do
        links $name cray-pmi $module
    done
    define=
    [ $module = cray-portals ] || define=-DCNOS_RANK_REF
    # shellcheck disable=SC2046
    "${cc[@]}" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror $define -o "$dir/cnos_rank" \
        "$root/tests/integration/runtime/cnos_rank.c" $(pkg-config --cflags --libs cray-pmi $module) ||
        fail "$module: does not compile"
    timeout 60 "$emunic" run -n 3 -q -- "$dir/cnos_rank" any >"$dir/out" ||
        fail "$module: job failed"
    [ "$(grep -c ok "$dir/out")" -eq 3 ] || { cat "$dir/out" >&2; fail "$module: not every rank is well"; }
done

# A process too many is told which option admits it.
timeout 60 "$emunic" run -n 2 -q -- "$dir/cnos_rank" child >"$dir/out" 2>"$dir/err" || fail "job with children failed"
[ "$(grep -c 'child refused' "$dir/out")" -eq 2 ] || { cat "$dir/out" >&2; fail "children are not refused"; }
grep -q 'refused: domain .* has its 2 members, and --members of emunic run admits more' "$dir/err" ||
    { cat "$dir/err" >&2; fail "the refusal does not name --members"; }
timeout 60 "$emunic" run -n 2 -q --members 4 -- "$dir/cnos_rank" child >"$dir/out" || fail "job with --members failed"
[ "$(grep -c 'child admitted' "$dir/out")" -eq 2 ] || { cat "$dir/out" >&2; fail "children are refused"; }

# nodes_of NIDS OPTION...: where the ranks of that program are.
nodes_of() {
    local wanted=$1
    shift
    timeout 60 "$emunic" run -q --json "$dir/json" "$@" >/dev/null || fail "job fails: $*"
    grep -q "\"rank_nids\":\[$wanted\]" <(tr -d ' \n' <"$dir/json") || { cat "$dir/json" >&2; fail "not on $wanted: $*"; }
}

# Node 0 is "myself" to old Portals programs; other programs have no such habit, and a script is not looked into.
small=aries:groups=1,chassis=1,blades=1
printf '#!/bin/sh\nexec "%s" any\n' "$dir/cnos_rank" >"$dir/script"
chmod +x "$dir/script"
nodes_of 1,2,3 -n 3 -- "$dir/cnos_rank" any
nodes_of 1,2,3 -n 3 --machine $small -- "$dir/cnos_rank" any
nodes_of 0,1,2,3 -n 4 --machine $small -- "$dir/cnos_rank" any
nodes_of 0,1,2 -n 3 --first-nid 0 -- "$dir/cnos_rank" any
nodes_of 0,1,2 -n 3 -- "$dir/script"
nodes_of 1,2,3 -n 3 --first-nid 1 -- "$dir/script"
nodes_of 0,1,2 -n 3 -- "$dir/runtime_rank"
