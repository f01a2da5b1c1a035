#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cc, CC and ftn of the build folder, as old Makefiles call them.
#
#   test_wrappers.sh EMUNIC BUILD_DIR SOURCE_DIR
# shellcheck source=../cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
build=$2 root=$3

wrappers=$build/mpi-shim/environment/wrappers
PATH=$wrappers:$PATH
unset CC CXX FC EMUNIC_CC EMUNIC_CXX EMUNIC_FC PE_PKGCONFIG_LIBS PKG_CONFIG_PATH CRAYPE_LINK_TYPE XTPE_LINK_TYPE
unset LD_LIBRARY_PATH

# try COMMAND...: in the test's folder; leaves $status, $out, $err.
try() {
    (cd "$dir" && "$@") >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    out=$(<"$dir/out")
    err=$(<"$dir/err")
}

# Libraries that a program or library names.
needs() {
    readelf -d "$dir/$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | tr '\n' ' '
}

# A program of 2012: the rank of PMI, the library's version by GNI.
write_program() {
    cat >"$dir/prog.c" <<'PROGRAM'
#include <gni_pub.h>
#include <pmi.h>
#include <stdio.h>

int main(void)
{
    gni_version_info_t version;
    int spawned, rank;

    if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS ||
        GNI_GetVersionInformation(&version) != GNI_RC_SUCCESS)
        return 1;
    printf("rank %d\n", rank);
    return PMI_Finalize();
}
PROGRAM
}

test_cc_compiles_and_links_what_is_needed_and_nothing_else() {
    write_program
    try cc -O2 -dynamic -c prog.c
    expect_status 0
    try cc -O2 -dynamic -o prog prog.o
    expect_status 0
    [[ $(needs prog) = *libugni.so.0* && $(needs prog) = *libpmi.so.0* ]] || bad "needs $(needs prog)"
    [[ $(needs prog) != *dmapp* && $(needs prog) != *portals* && $(needs prog) != *rca* ]] || bad "needs $(needs prog)"
    call run -q -n 2 -- "$dir/prog"
    expect_status 0
    [ "$(sort <<<"$out")" = $'rank 0\nrank 1' ] || bad "the ranks say: $out"
}

test_CC_compiles_cplusplus() {
    write_program
    printf '#include <string>\n' | cat - "$dir/prog.c" >"$dir/prog.cc"
    try CC -std=c++17 -o prog prog.cc
    expect_status 0
    [[ $(needs prog) = *libpmi.so.0* ]] || bad "needs $(needs prog)"
    call run -q -- "$dir/prog"
    expect_out '^rank 0$'
}

# Where there is no Fortran, the wrapper says so.
test_ftn_compiles_fortran() {
    cat >"$dir/prog.f90" <<'PROGRAM'
program prog
    use iso_c_binding
    interface
        integer(c_int) function pmi_init(spawned) bind(c, name="PMI_Init")
            import
            integer(c_int) :: spawned
        end function
    end interface
    integer(c_int) :: spawned
    if (pmi_init(spawned) /= 0) stop 1
    print '(a)', "started"
end program
PROGRAM
    try ftn -o prog prog.f90
    if ! command -v gfortran >/dev/null; then
        expect_status 1
        expect_error_line '^ftn: gfortran: no such compiler; EMUNIC_FC names another$'
        return
    fi
    expect_status 0
    call run -q -n 2 -- "$dir/prog"
    [ "$out" = $'started\nstarted' ] || bad "the ranks say: $out"
}

test_preprocessing_and_dependencies_do_not_link() {
    write_program
    try cc -E prog.c
    expect_status 0
    expect_out 'PMI_Get_rank'
    for option in -M -MM; do
        try cc "$option" prog.c
        expect_status 0
        expect_out '^prog.o: prog.c'
    done
    for option in --version -v -dumpmachine -print-search-dirs; do
        try cc "$option"
        expect_status 0
    done
    try cc -S -o prog.s prog.c
    expect_status 0
    try cc -c prog.c
    try cc -r -o both.o prog.o
    expect_status 0
    [ ! -e "$dir/a.out" ] || bad "something was linked"
}

test_dependencies_beside_a_link_do() {
    write_program
    try cc -MMD -MF prog.d -o prog prog.c
    expect_status 0
    [ -s "$dir/prog.d" ] || bad "no prog.d"
    [[ $(needs prog) = *libugni* ]] || bad "needs $(needs prog)"
}

test_shared_libraries_are_linked() {
    write_program
    try cc -shared -fPIC -o libprog.so prog.c
    expect_status 0
    [[ $(needs libprog.so) = *libugni* ]] || bad "needs $(needs libprog.so)"
}

test_static_is_refused_with_a_reason() {
    write_program
    try cc -static -o prog prog.c
    expect_status 1
    expect_error_line '^cc: no static programs: .*shared'
    try env CRAYPE_LINK_TYPE=static cc -o prog prog.c
    expect_status 1
    expect_error_line '^cc: no static programs: .*CRAYPE_LINK_TYPE'
    try env CRAYPE_LINK_TYPE=static cc -dynamic -o prog prog.c
    expect_status 0
    try cc -static -c prog.c
    expect_status 0
}

# As configure scripts try a compiler.
test_a_program_from_standard_input() {
    (cd "$dir" && echo 'int main(void) { return 7; }' | cc -x c -o prog -)
    try ./prog
    expect_status 7
}

test_arguments_arrive_as_they_are() {
    mkdir "$dir/two words"
    printf '#include <stdio.h>\n#include "own.h"\nint main(void) { return puts(TEXT OWN) < 0; }\n' >"$dir/prog.c"
    echo '#define OWN "own"' >"$dir/two words/own.h"
    # shellcheck disable=SC2016
    try cc '-DTEXT="a  $HOME * "' -I "two words" -o prog prog.c
    expect_status 0
    try ./prog
    # shellcheck disable=SC2016
    [ "$out" = 'a  $HOME * own' ] || bad "the program says: $out"
}

# The program's own header of a name that one of ours has.
test_own_include_folders_come_first() {
    mkdir "$dir/own"
    echo '#define OWN 3' >"$dir/own/pmi.h"
    printf '#include <pmi.h>\nint main(void) { return OWN; }\n' >"$dir/prog.c"
    try cc -Iown -o prog prog.c
    try ./prog
    expect_status 3
}

test_the_real_compiler_may_have_the_same_name() {
    write_program
    mkdir "$dir/real"
    printf '#!/bin/sh\necho x >>"%s/count"\nexec gcc "$@"\n' "$dir" >"$dir/real/cc"
    chmod +x "$dir/real/cc"
    # The wrapper's folder twice, in two spellings.
    try env EMUNIC_CC=cc PATH="$wrappers:$wrappers/../wrappers/:$dir/real:$PATH" timeout 20 cc -o prog prog.c
    expect_status 0
    [ "$(wc -l <"$dir/count")" -eq 1 ] || bad "the real compiler ran $(wc -l <"$dir/count") times"
    try env EMUNIC_CC=no-such-compiler cc -o prog prog.c
    expect_status 1
    expect_error_line '^cc: no-such-compiler: no such compiler; EMUNIC_CC names another$'
    try env EMUNIC_CC='gcc -DEXTRA' cc -o prog prog.c
    expect_status 0
}

test_modules_are_those_of_the_environment() {
    write_program
    # shellcheck source=/dev/null
    named=$(PKG_CONFIG_PATH=$build/meson-uninstalled && export PKG_CONFIG_PATH &&
        . "$root/mpi-shim/environment/cray-environment.sh" && tr : '\n' <<<"$PE_PKGCONFIG_LIBS" | sort)
    # shellcheck disable=SC2016
    own=$(sed -n '/^if/,/^fi/ { s/.*PKGCONFIG_LIBS=//; s/^\$[A-Z_]*://; /^cray/ p }' "$wrappers/cc" | tr : '\n' | sort)
    [ "$named" = "$own" ] || bad "named: $named; own: $own"
    try env PE_PKGCONFIG_LIBS=cray-pmi:no-such-module cc -o prog prog.c
    expect_status 1
    expect_err '^cc: PE_PKGCONFIG_LIBS names what pkg-config does not find$'
    # The reference dialect in place of Cray's; and nothing at all.
    try env PE_PKGCONFIG_LIBS=portals-ref cc -E -include portals3.h -x c /dev/null
    expect_status 0
    expect_out PtlInit
    try env PE_PKGCONFIG_LIBS= cc -c prog.c
    expect_status 1
}

run_tests cc_compiles_and_links_what_is_needed_and_nothing_else CC_compiles_cplusplus ftn_compiles_fortran \
    preprocessing_and_dependencies_do_not_link dependencies_beside_a_link_do shared_libraries_are_linked \
    static_is_refused_with_a_reason a_program_from_standard_input arguments_arrive_as_they_are \
    own_include_folders_come_first the_real_compiler_may_have_the_same_name modules_are_those_of_the_environment
