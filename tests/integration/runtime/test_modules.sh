#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# README's recipe with each pkg-config module of the build folder: the flags name public include folders alone, a
# program compiles with them and finds its own headers, runs in a job, and is loaded without `emunic run` too, so that
# it can say itself what it lacks then.
#
#   test_modules.sh BUILD_DIR EMUNIC SOURCE_DIR
set -u -o pipefail
build=$1 emunic=$2 root=$3

dir=$(mktemp -d "$build/modules.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export PKG_CONFIG_PATH=$build/meson-uninstalled
unset LD_LIBRARY_PATH

recipe=$(sed -n 's/^    \(cc -o prog .*\)/\1/p' "$root/README.md")
[[ $recipe = *'cray-ugni cray-pmi'* ]] || { echo "Bail out! README has no recipe"; exit 1; }

# Headers of the program, named as some of ours.
mkdir -p "$dir/own/emunic/base" "$dir/own/src"
echo '#define OWN_LOG' >"$dir/own/emunic/base/log.h"
echo '#define OWN_OBJECT' >"$dir/own/src/object.h"

# Where the ranks of a job look for libraries, whether their program has a run path or not.
searched=$("$emunic" run -q -- printenv LD_LIBRARY_PATH) || exit 1

bad() { echo "# $*"; return 1; }

check_module() {
    local module=$1 flag prog=$dir/prog
    for flag in $(pkg-config --cflags "$module"); do
        [[ $flag = -I$root/*/include || $flag = -I$root/*/include/ref ]] ||
            bad "not a public include folder: $flag" || return
    done
    for flag in $(pkg-config --libs-only-L "$module"); do
        [[ :$searched: = *:${flag#-L}:* ]] || bad "ranks do not look into ${flag#-L}" || return
    done
    printf '#define MODULE_%s\n#include "%s/tests/integration/runtime/module.c"\n' "${module//-/_}" "$root" \
        >"$dir/prog.c"
    # CPATH is behind the folders of the command line.
    (cd "$dir" && CPATH=$dir/own eval "${recipe/cray-ugni cray-pmi/$module}") || bad "does not compile" || return
    timeout 60 "$emunic" run -q -n 2 -- "$prog" >"$dir/out" 2>&1 || { bad "$(<"$dir/out")"; return; }
    [ "$(grep -cx ok "$dir/out")" -eq 2 ] || bad "two ranks say: $(<"$dir/out")" || return
    # Without a job it may fail; the loader has to find everything.
    timeout 60 "$prog" >"$dir/out" 2>&1
    [ $? -lt 126 ] || bad "without emunic run: $(<"$dir/out")"
}

modules=$(cd "$PKG_CONFIG_PATH" && printf '%s\n' *-uninstalled.pc | sed 's/-uninstalled.pc$//')
printf '1..%d\n' "$(wc -l <<<"$modules")"
n=0
n_bad=0
for module in $modules; do
    n=$((n + 1))
    if check_module "$module"; then
        echo "ok $n - $module"
    else
        echo "not ok $n - $module"
        n_bad=$((n_bad + 1))
    fi
done
[ "$n_bad" -eq 0 ]
