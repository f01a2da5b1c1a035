# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
#
# Sourced by the build scripts of third-party programs: gets a Debian source package without touching the system's
# lists.
#
#   step NAME COMMAND...        run a step with its output in $log; on failure show the end of it and exit 1
#   get_source                  the files of the package into $work/dl; exit 77 when there is no network
#   unpack_source               $work/src, with Debian's patches
#
# Wants: work (folder), log, package=name=version, dsc, dsc_sha256, prefix (for variables and messages), source_dir (a
# folder that already holds the files, or empty), mirror (or empty: the system's own). Private lists are in $work/apt;
# the caller removes them. dpkg-source verifies the checksums that the .dsc holds; that of the .dsc is checked here.

# shellcheck disable=SC2016,SC2154  # apt expands its own variables; the caller sets ours
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf '%s-build: %s\n' "$prefix" "$*" >&2; }
fail() { say "$*"; exit 1; }
skip() { say "skipped: $*"; exit 77; }

step() {
    name=$1
    shift
    say "$name"
    printf '\n== %s: %s\n' "$name" "$*" >>"$log"
    if ! nice "$@" >>"$log" 2>&1 9>&-; then
        tail -n 30 "$log" >&2
        fail "$name failed; log in $log"
    fi
}

# apt-get with lists, state and cache of its own.
private_apt() {
    apt-get -qq \
        -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none \
        -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@" >>"$log" 2>&1
}

use_mirror() {
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    echo "deb-src [signed-by=$keyring] $1 bookworm main" >"$work/apt/sources.list"
    private_apt update
}

# Where this system gets Debian 12 from.
system_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)' 2>>"$log" |
        awk '$2 == "bookworm" && $3 == "main" && $4 == "Packages" { print $1; exit }'
}

source_complete() {
    [ -f "$work/dl/$dsc" ] && echo "$dsc_sha256  $work/dl/$dsc" | sha256sum --quiet --check - >>"$log" 2>&1
}

get_source() {
    mkdir -p "$work/dl"
    if [ -n "$source_dir" ] && ! source_complete; then
        cp "$source_dir/${dsc%%-*}"* "$work/dl/"
    fi
    source_complete && return 0
    command -v apt-get >/dev/null || skip "apt-get not found, cannot fetch the source of $package"
    [ -n "$mirror" ] || mirror=$(system_mirror)
    [ -n "$mirror" ] || skip "apt knows no source of Debian 12 packages"
    say "fetching $package"
    use_mirror "$mirror" &&
        (cd "$work/dl" && private_apt source --download-only --only-source "$package") || true
    source_complete || skip "no network: the source of $package could not be fetched (details in $log)"
}

unpack_source() {
    [ -f "$work/src/.unpacked" ] && return 0
    rm -rf "$work/src"
    step "unpack and verify" dpkg-source --no-copy -x "$work/dl/$dsc" "$work/src"
    touch "$work/src/.unpacked"
}
