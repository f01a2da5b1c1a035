#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Files that a user gives: none makes the command wait, or work for long. Each call has two seconds.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

limit=${CLI_FILES_LIMIT:-2}

# refused MESSAGE ARGUMENT...: one line, and no time limit.
refused() {
    local message=$1
    shift
    call "$@"
    [ "$status" -eq 1 ] || [ "$status" -eq 2 ] || bad "status is $status: $*"
    expect_err "$message"
}

# Every way to give a file, with FILE in its place.
each_file() {
    local message=$1 file=$2
    refused "$message" run -n 1 --machine "$file" -- true
    refused "$message" serve --name "$id" --machine "$file"
    refused "$message" run -n 1 --faults "$file" -- true
    refused "$message" serve --name "$id" --faults "$file"
    refused "$message" sim explain "$file"
    refused "$message" run -n 2 --hosts "@$file" -- true
    refused "$message" serve --name "$id" --hosts "$file" --key-file "$file"
}

test_pipe_is_refused_at_once() {
    mkfifo "$dir/pipe.yaml"
    each_file "not a (regular )?file" "$dir/pipe.yaml"
}

test_device_is_refused_at_once() {
    ln -s /dev/zero "$dir/zero.yaml"
    each_file "not a (regular )?file" "$dir/zero.yaml"
}

test_deep_nesting_is_refused_at_once() {
    python3 -c 'print("machine: " + "[" * 200000)' >"$dir/deep.yaml"
    refused "1:[0-9]+: nested too deeply" run -n 1 --machine "$dir/deep.yaml" -- true
    refused "1:[0-9]+: nested too deeply" sim explain "$dir/deep.yaml"
    refused "1:[0-9]+: nested too deeply" run -n 1 --faults "$dir/deep.yaml" -- true
}

test_many_anchors_are_refused_at_once() {
    python3 -c 'print("".join(f"- &a{i}\n" for i in range(60000)))' >"$dir/anchors.yaml"
    refused "too many anchors" run -n 1 --machine "$dir/anchors.yaml" -- true
    refused "too many anchors" run -n 1 --faults "$dir/anchors.yaml" -- true
}

test_huge_file_is_refused_at_once() {
    truncate -s 100G "$dir/huge.yaml"
    refused "too large|not a file" run -n 1 --machine "$dir/huge.yaml" -- true
    refused "too large|not a file" run -n 1 --faults "$dir/huge.yaml" -- true
    refused "too large|not a file" run -n 2 --hosts "@$dir/huge.yaml" -- true
}

run_tests pipe_is_refused_at_once device_is_refused_at_once deep_nesting_is_refused_at_once \
    many_anchors_are_refused_at_once huge_file_is_refused_at_once
