#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The table of settings: as people see it, as JSON, and against man page and code.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

test_each_setting_has_value_default_origin_and_meaning() {
    call settings
    expect_status 0
    expect_out '^VARIABLE +VALUE +DEFAULT +UNIT +ORIGIN +SET_BY +MEANING'
    expect_out '^EMUNIC_SPIN +2000 +2000 +polls +default +user +polls of a blocking call'
    expect_out '^EMUNIC_PROVIDER +- +- +- +default +user '
    expect_out '^EMUNIC_NID +- +- +- +default +launcher +node of this rank'
    [ -z "$err" ] || bad "something on stderr: $err"
}

test_the_environment_is_an_origin() {
    export EMUNIC_SPIN=0x10 EMUNIC_MEMORY=cma
    call settings
    unset EMUNIC_SPIN EMUNIC_MEMORY
    expect_status 0
    expect_out '^EMUNIC_SPIN +16 +2000 +polls +environment '
    expect_out '^EMUNIC_MEMORY +cma +auto +- +environment '
}

test_wrong_values_and_names_draw_warnings() {
    export EMUNIC_SPIN=many EMUNIC_SPINN=1
    call settings
    unset EMUNIC_SPIN EMUNIC_SPINN
    expect_status 0
    expect_out '^EMUNIC_SPIN +2000 +2000 +polls +default '
    grep -q "EMUNIC_SPIN: 'many' is not a number from 0 to 1000000 polls; using 2000" <<<"$err" || bad "stderr: $err"
    grep -q 'unknown variable EMUNIC_SPINN; did you mean EMUNIC_SPIN?' <<<"$err" || bad "stderr: $err"
}

test_json_has_the_same_in_snake_case() {
    export EMUNIC_SPIN=7
    call settings --json
    unset EMUNIC_SPIN
    expect_status 0
    python3 - "$dir/out" <<'PYTHON' || bad "out: $out"
import json
import sys

answer = json.load(open(sys.argv[1], encoding="utf-8"))
rows = {row["name"]: row for row in answer["settings"]}
assert answer["schema"] == 1
assert rows["EMUNIC_SPIN"] == {
    "name": "EMUNIC_SPIN", "type": "number", "value": 7, "default": 2000, "min": 0, "max": 1000000, "unit": "polls",
    "origin": "environment", "set_by": "user", "meaning": "polls of a blocking call before it sleeps"}
assert rows["EMUNIC_NODE_VIEW"]["default"] == "auto" and rows["EMUNIC_COOKIE"]["value"] is None
PYTHON
}

test_man_page_and_code_agree_with_the_table() {
    python3 "$here/settings_page.py" "$emunic" "$here/../../.." >"$dir/findings" || bad "$(<"$dir/findings")"
}

run_tests each_setting_has_value_default_origin_and_meaning the_environment_is_an_origin \
    wrong_values_and_names_draw_warnings json_has_the_same_in_snake_case man_page_and_code_agree_with_the_table
