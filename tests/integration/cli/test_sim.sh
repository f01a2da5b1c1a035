#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `emunic sim`: list, run, explain, traffic, messages, audit; no daemon and no job takes part.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

small=aries:groups=2,chassis=2,blades=4

# wrong PATTERN WORD...: status 2 and one line.
wrong() {
    local pattern=$1
    shift
    call sim "$@"
    expect_status 2
    expect_error_line "$pattern.*; try --help\$"
}

# json EXPRESSION: of the object on $out, named `o`, must be true.
json() {
    python3 -c '
import json, sys
o = json.load(sys.stdin)
assert isinstance(o, dict) and o["schema"] == 1
sys.exit(not eval(sys.argv[1]))' "$1" <<<"$out" || bad "not true: $1 of ${out:0:400}"
}

# The object on $out without what depends on the host.
figures() {
    python3 -c '
import json, sys
o = json.load(sys.stdin)
del o["threads"]
for run in o["runs"]:
    del run["speed"]
print(json.dumps(o, sort_keys=True))' <<<"$out"
}

test_each_word_has_help_with_an_example() {
    local word
    for word in '' list run explain traffic messages audit; do
        # shellcheck disable=SC2086  # no word is no word
        call sim $word --help
        expect_status 0
        expect_out '^usage: emunic sim'
        expect_out '^Example:'
        expect_out '^  emunic sim '
        [ -z "$err" ] || bad "something on stderr: $err"
    done
}

test_wrong_usage_gets_one_precise_line() {
    wrong 'emunic sim: one of list, run, explain, traffic, messages, audit is missing'
    wrong "emunic sim: 'dance' is none of list, run, explain, traffic, messages, audit" dance
    wrong 'emunic sim: --nid: no such option' --nid
    wrong "emunic sim: list: 'x': takes options only" list x
    wrong "emunic sim: run: an experiment or 'all' is missing" run
    wrong "emunic sim: run: an experiment or 'all' is missing" run --full
    wrong "emunic sim: run: 'XC-999' is not an experiment" run XC-999
    wrong "emunic sim: run: 'XC-' is not an experiment" run XC-
    wrong "emunic sim: --seed: '-1' is not a number" run --seed -1 XC-18
    wrong "emunic sim: --seeds: '0' is not a number from 1" run --seeds 0 XC-18
    wrong "emunic sim: --threads: 'two' is not a number" run XC-18 --threads two
    wrong "emunic sim: --jobs: '0' is not a number" run XC-18 --jobs 0
    wrong 'emunic sim: --fast: no such option' run XC-18 --fast
    wrong 'emunic sim: explain: the machine is missing' explain
    wrong 'emunic sim: explain: the machine is missing' --explain
    wrong "emunic sim: explain: 'xd1': takes one machine" explain aries xd1
    wrong 'emunic sim: traffic: the machine is missing' traffic
    wrong 'emunic sim: audit: the machine is missing' audit
    wrong "emunic sim: audit: 'xd1': takes one machine" audit aries xd1
    wrong "emunic sim: --pairs: '-1' is not a number" audit aries --pairs -1
    wrong "emunic sim: --pattern: 'messages' is not a pattern" traffic aries --pattern messages
    wrong "emunic sim: --load: '5' is neither" traffic aries --load 0.5,5
    wrong "emunic sim: --load: '0' is neither" traffic aries --load 0
    wrong "emunic sim: --load: 'nan' is neither" traffic aries --load nan
    wrong "emunic sim: --mode: 'fast' is not a routing mode" traffic aries --mode minimal,fast
    wrong "emunic sim: --hot: '0.5' is not SHARE:X,Y,Z" traffic aries --hot 0.5
    wrong "emunic sim: --hot: '0.5:1,-1,1' is not SHARE:X,Y,Z" traffic aries --hot 0.5:1,-1,1
    wrong "emunic sim: --shift: '3:1' is not DIMENSION:NUMBER" traffic aries --shift 3:1
    wrong "emunic sim: --record: 'all' is none of latency, links, vcs" traffic aries --record all
    wrong 'emunic sim: --record: needs --output' traffic aries --record links
    wrong 'emunic sim: --window: needs --response' traffic aries --window 4
    wrong 'emunic sim: --time and --packets exclude each other' traffic aries --time 1 --packets 1
    wrong "emunic sim: --job: 'uniform' is not PATTERN:NODES" traffic aries --job uniform
    wrong "emunic sim: --job: 'uniform:4:packed:0' is not PATTERN:NODES" traffic aries --job uniform:4:packed:0
    wrong "emunic sim: --job: 'all-to-all:4' has a pattern" traffic aries --job all-to-all:4
    wrong "emunic sim: --job: 'uniform:4:near' has a place" traffic aries --job uniform:4:near
    wrong 'emunic sim: --job: has a pattern of its own' traffic aries --job uniform:4 --pattern hot
    wrong "emunic sim: --sizes: '2:0' is not UNITS or UNITS:WEIGHT" traffic aries --sizes 2:0
    wrong 'emunic sim: --sizes and --units exclude each other' traffic aries --sizes 2 --units 3
    wrong "emunic sim: --burst: '8' is not PACKETS:SHARE" traffic aries --burst 8
    wrong 'emunic sim: --burst: not with load max' traffic aries --burst 8:0.5 --load max
    wrong 'emunic sim: --find-saturation and --load exclude each other' traffic aries --find-saturation --load 1
    wrong 'emunic sim: --find-saturation: not with --time' traffic aries --find-saturation --time 1
    wrong 'emunic sim: --find-saturation: not with --time' traffic aries --find-saturation --pattern all-to-all
}

test_the_list_names_experiments_by_what_they_need() {
    call sim list
    expect_status 0
    expect_out '^ID +MACHINE +KIND +NEEDS +WHAT$'
    expect_out '^XC-18 +aries +A +analytic +[a-z]'
    expect_out '^[A-Z0-9]+-[0-9]+ +[a-z0-9-]+ +F +live '
    call sim list --json
    expect_status 0
    [ "$(wc -l <<<"$out")" -eq 1 ] || bad 'not one line'
    json 'len(o["experiments"]) == len({e["id"] for e in o["experiments"]})'
    json 'all(set(e["kinds"]) <= set("ASKPFQ") and e["kinds"] for e in o["experiments"])'
    json 'all((e["needs"] == "live") == (set(e["kinds"]) == {"F"}) for e in o["experiments"])'
    json 'all(0 < len(e["summary"]) <= 100 for e in o["experiments"])'
}

test_run_prints_a_line_per_figure() {
    local line
    call sim run XC-18 --quick
    expect_status 0
    expect_out '^EXP XC-18 routers_per_group src=96 got=96 unit=routers tol=exact kind=A seed=1 verdict=PASS class=counted$'
    line='EXP [A-Z0-9]+-[A-Za-z0-9]+ [^ ]+ src=[^ ]+ got=[^ ]+ unit=[^ ]+ tol=[^ ]+ kind=[ASKPFQ] seed=[0-9]+ '
    line+='verdict=(PASS|FAIL) class=(measured|counted|fitted|formula)( param=[^ ]+:[^ ]+)?$'
    [ -z "$(grep -vE "^(#|$line)" <<<"$out")" ] || bad "not an EXP line: $out"
    expect_err '^1 runs of experiments, [0-9]+ figures: [0-9]+ passed, 0 failed$'
}

test_run_keeps_the_order_whatever_runs_first() {
    call sim run XC-21 XC-18 xc-26 XC-18 --jobs 3 --quiet
    expect_status 0
    [ "$(grep -oE '^EXP [^ ]+' <<<"$out" | uniq | tr -d '\n')" = 'EXP XC-21EXP XC-18EXP XC-26' ] || bad "order: $out"
    [ -z "$err" ] || bad "something on stderr: $err"
}

test_what_is_only_counted_runs_once_for_all_seeds() {
    call sim run XC-18 --seeds 3 --seed 5 --json
    expect_status 0
    json '[e["seed"] for e in o["experiments"]] == [5]'
    json 'o["passed"] == sum(e["passed"] for e in o["experiments"]) and o["failed"] == 0 and o["mode"] == "quick"'
    json 'all(l["verdict"] == "PASS" for e in o["experiments"] for l in e["lines"] if "metric" in l)'
    json 'all(set("F") == set("F") and e["id"] for e in o["live"])'
}

test_live_experiments_are_told_apart() {
    local live
    live=$("$emunic" sim list | awk '$4 == "live" { print $1; exit }')
    wrong "emunic sim: run: $live needs real processes" run "$live"
}

test_explain_shows_sources_marks_and_overrides() {
    call sim explain aries:groups=6,nic.ce_engines=2
    expect_status 0
    expect_out '^PARAMETER +VALUE +UNIT +SOURCE +MARK +TEXT$'
    expect_out '^topology\.groups +6 \(file: 2\) +- +XCWP, 2\.1 +override \[OUR\] '
    expect_out '^nic\.ce_engines +2 \(file: 4\) +- +XCWP, 2\.3 +override '
    expect_out '^links\.green\.gbps_per_lane +14 +Gb/s +XCWP, 2\.1 +- '
    expect_out '^links\.green\.wire_ns +5 +ns +spec/machines\.md 2\.6 +\[OUR\] '
    call sim --explain aries --json
    expect_status 0
    json 'o["machine"] == "aries" and o["file"].endswith("/aries.yaml")'
    json 'len({p["key"] for p in o["parameters"]}) == len(o["parameters"]) > 40'
    json 'not any("file_value" in p for p in o["parameters"])'
    call sim explain aries:groups=6 --json
    json '[p["key"] + p["value"] + p["file_value"] for p in o["parameters"]
           if "file_value" in p] == ["topology.groups62"]'
}

test_explain_knows_every_machine_and_each_value_has_a_word() {
    local machine silent
    for machine in "$(dirname "$emunic")"/../../emunic/machines/*.yaml; do
        [ -e "$machine" ] || continue
        call sim explain "$machine" --json
        expect_status 0
        silent=$(python3 -c '
import json, sys
print(*(p["key"] for p in json.load(sys.stdin)["parameters"] if not p["text"]))' <<<"$out")
        [ "$silent" = 'schema name topology.kind' ] || bad "$machine says nothing about: $silent"
    done
}

test_explain_refuses_what_the_loader_refuses() {
    call sim explain aries:groups=0
    expect_status 2
    expect_error_line "emunic sim: explain: override 'groups=0'"
    call sim explain nothing
    expect_status 2
    expect_error_line "emunic sim: explain: no machine 'nothing'; there are "
}

test_the_same_seed_gives_the_same_trace_on_any_threads() {
    local one two other
    call sim traffic $small --time 5 --load 0.3,max --mode adaptive-0,minimal --seed 7 --json
    expect_status 0
    json 'len(o["runs"]) == 4 and all(r["delivered"] > 100 and r["lost"] == 0 for r in o["runs"])'
    one=$(figures)
    call sim traffic $small --time 5 --load 0.3,max --mode adaptive-0,minimal --seed 7 --json --threads 2
    expect_status 0
    two=$(figures)
    [ "$one" = "$two" ] || bad "one thread: $one two: $two"
    call sim traffic $small --time 5 --load 0.3,max --mode adaptive-0,minimal --seed 8 --json
    other=$(figures)
    [ "$one" != "$other" ] || bad 'another seed gives the same'
}

test_traffic_prints_throughput_latency_and_speed() {
    call sim traffic $small --time 5 --load 0.2 --response 1 --window 16
    expect_status 0
    expect_out "^# $small: 64 nodes, 16 routers, uniform, 14 units per packet, seed 1\$"
    expect_out '^MODE +LOAD +OFFERED_GB/S +ACCEPTED_GB/S +DELIVERED +MEAN_NS'
    expect_out '^adaptive-0 +0\.2 +[0-9.]+ +[0-9.]+ +[1-9][0-9]* '
    expect_out '^MODE +LOAD +SECONDS +CPU_SECONDS +PACKETS/S +PACKET_HOPS/S +UNIT_HOPS/S +NS/PACKET_HOP +NS/PACKET'
}

# A SeaStar NIC sends 9 flits of 68 bits, 76.5 bytes, in 29 clocks of 500 MHz: 1.32 GB/s, and its link twice as much.
test_nics_have_their_rates_unless_ideal() {
    call sim traffic seastar:x=8,y=4,z=4 --pattern neighbour --load max --time 50 --json
    expect_status 0
    json 'o["runs"][0]["accepted_gb_per_s"] < 1.32'
    call sim traffic seastar:x=8,y=4,z=4 --pattern neighbour --load max --time 50 --json --ideal-nic
    expect_status 0
    json 'o["runs"][0]["accepted_gb_per_s"] > 2'
}

test_seeds_give_means_with_intervals() {
    call sim traffic $small --time 5 --load 0.2,0.4 --seed 3 --seeds 3 --json
    expect_status 0
    json '[r["seed"] for r in o["runs"]] == [3, 4, 5] * 2'
    json '[m["load"] for m in o["means"]] == [0.2, 0.4] and all(m["accepted_gb_per_s"]["n"] == 3 for m in o["means"])'
    json 'abs(o["means"][0]["accepted_gb_per_s"]["mean"] - sum(r["accepted_gb_per_s"] for r in o["runs"][:3]) / 3) < 1e-9'
    json 'all(0 < m["accepted_gb_per_s"]["half_95"] < 0.3 for m in o["means"])'
    call sim traffic $small --time 5 --load 0.2 --seeds 2
    expect_status 0
    expect_out '^# means over 2 seeds'
}

# Two vertices with two nodes each: the search brackets the load, and each run of it is judged by the same rule.
test_saturation_is_found() {
    local found
    call sim traffic x1:dimensions=1,nodes_per_vertex=2 --find-saturation --seed 2 --json
    expect_status 0
    json 'len(o["saturation"]) == 1 and o["saturation"][0]["searches"][0]["loads"] == len(o["runs"])'
    json '0 < o["saturation"][0]["searches"][0]["load"] < o["saturation"][0]["searches"][0]["refused_load"]'
    json 'all((r["nodes"]["accepted_share"] >= 0.95) == (r["load"] <= o["saturation"][0]["load"]["mean"]) for r in o["runs"])'
    json '(lambda s: s["refused_load"] - s["load"] <= 0.01 * s["refused_load"])(o["saturation"][0]["searches"][0])'
    found=$(figures)
    call sim traffic x1:dimensions=1,nodes_per_vertex=2 --find-saturation --seed 2 --json
    [ "$found" = "$(figures)" ] || bad 'the same seed finds something else'
    call sim traffic x1:dimensions=1,nodes_per_vertex=2 --find-saturation --output "$dir/out.s"
    ! /usr/bin/python3 -c 'import matplotlib' 2>/dev/null || [ -s "$dir/out.s/saturation.svg" ] || bad 'no bars are drawn'
    expect_out '^MODE +SATURATION +\+- +ACCEPTED_GB/S'
}

test_nodes_have_throughput_and_fairness() {
    call sim traffic $small --pattern transpose --time 5 --load 0.2 --per-node --json
    expect_status 0
    # Transposed, the eight nodes of the diagonal are silent.
    json 'o["runs"][0]["nodes"]["senders"] == 56 and len(o["runs"][0]["nodes"]["sent_gb_per_s"]) == 64'
    json 'sum(x == 0 for x in o["runs"][0]["nodes"]["sent_gb_per_s"]) == 8'
    json '(lambda n: n["max_gb_per_s"] == max(n["sent_gb_per_s"]) and 0.8 < n["jain_index"] <= 1)(o["runs"][0]["nodes"])'
    call sim traffic $small --time 5 --load 0.2 --json
    json '"sent_gb_per_s" not in o["runs"][0]["nodes"]'
}

# Mean sizes and loads stay. In a burst a node makes packets faster than its NIC takes them, so they wait.
test_sizes_are_mixed_and_sources_burst() {
    local smooth
    call sim traffic $small --time 20 --load 0.4 --sizes 2:3,14 --json
    expect_status 0
    json 'o["mean_units"] == 5 and abs(o["runs"][0]["delivered_units"] / o["runs"][0]["delivered"] - 5) < 0.1'
    json '0.95 < o["runs"][0]["accepted_gb_per_s"] / o["runs"][0]["offered_gb_per_s"] < 1.05'
    call sim traffic $small --time 20 --load 0.4 --json
    smooth=$out
    call sim traffic $small --time 20 --load 0.4 --burst 16:0.05 --json
    expect_status 0
    json "(lambda a, b: b > 1.1 * a)($(python3 -c 'import json, sys
print(json.load(sys.stdin)["runs"][0]["latency"]["mean_ns"])' <<<"$smooth"), o['runs'][0]['latency']['mean_ns'])"
    json '0.9 < o["runs"][0]["accepted_gb_per_s"] / o["runs"][0]["offered_gb_per_s"] < 1.1'
    call sim traffic $small --sizes 2,99
    expect_status 1
    expect_error_line 'sim: --sizes: a packet of this machine has at most '
}

# Two jobs of two groups each, which four cables join. The second one has 16 nodes in each group and sends to the other:
# a quarter of a cable's 12.5 GB/s for each. Random nodes of all groups get what they offer.
test_jobs_share_a_machine_by_their_places() {
    local words=(sim traffic dragonfly-plus --load 0.9 --mode minimal --json)
    call "${words[@]}" --job uniform:32:group:0.2 --job shift:32:group:0.5
    expect_status 0
    json 'o["pattern"] == "jobs" and [j["nids"] for j in o["runs"][0]["jobs"]] == [[*range(32)], [*range(32, 64)]]'
    json 'abs(o["runs"][0]["jobs"][1]["accepted_gb_per_s"] - 3.125) < 0.02'
    json 'abs(o["runs"][0]["jobs"][0]["accepted_gb_per_s"] / o["runs"][0]["jobs"][0]["offered_gb_per_s"] - 1) < 0.05'
    call "${words[@]}" --job uniform:32:random:0.2 --job shift:32:random:0.5
    expect_status 0
    json 'len({n for j in o["runs"][0]["jobs"] for n in j["nids"]}) == 64 and o["runs"][0]["nodes"]["senders"] == 64'
    json 'all(abs(j["accepted_gb_per_s"] / j["offered_gb_per_s"] - 1) < 0.05 for j in o["runs"][0]["jobs"])'
    call sim traffic dragonfly-plus --time 5 --load 0.2 --job hot:8 --job neighbour:5:packed:2
    expect_status 0
    expect_out '^adaptive-0 +0\.2 +1 +1 +hot +8 +packed'
    expect_out '^adaptive-0 +0\.2 +1 +2 +neighbour +5 +packed +5\.0'
    call sim traffic dragonfly-plus --job uniform:79 --job uniform:2:group
    expect_status 1
    expect_error_line 'sim: --job: number 2 gets 0 of its 2 nodes'
}

test_every_pattern_runs() {
    local pattern
    for pattern in uniform hot shift transpose tornado neighbour complement all-to-all; do
        call sim traffic $small --pattern $pattern --packets 5 --load 0.2 --json
        expect_status 0
        json 'o["runs"][0]["run"] == "complete" and o["runs"][0]["delivered"] > 0 and o["runs"][0]["in_network"] == 0'
    done
}

test_a_trace_file_is_played() {
    printf 'emunic-trace 1\n0 0 5 200\n100.5 3 4 0\n# end\n' >"$dir/trace"
    call sim traffic $small --trace "$dir/trace" --json
    expect_status 0
    json 'o["runs"][0]["delivered"] == 5 and o["runs"][0]["run"] == "complete"'
    # Ping, and pong 100 ns behind it, ten times; nothing else is in the network.
    {
        echo 'emunic-trace 2'
        echo '0 0 5 64'
        for i in 1 3 5 7 9 11 13 15 17; do
            printf '100 5 0 64 %d\n100 0 5 64 %d\n' $i $((i + 1))
        done
    } >"$dir/trace"
    call sim traffic $small --trace "$dir/trace" --json
    expect_status 0
    json 'o["runs"][0]["delivered"] == 19 and o["runs"][0]["run"] == "complete"'
    json 'abs(o["runs"][0]["last_message_ns"] - 18 * 100 - 19 * o["runs"][0]["latency"]["mean_ns"]) < 1'
    printf 'emunic-trace 2\n0 0 5 8\n0 6 0 8 1\n' >"$dir/trace"
    call sim traffic $small --trace "$dir/trace"
    expect_status 1
    expect_error_line 'trace:3: message 1 goes to node 5, and node 6 cannot wait for it'
    printf 'emunic-trace 1\n0 0 64 200\n' >"$dir/trace"
    call sim traffic $small --trace "$dir/trace"
    expect_status 1
    expect_error_line 'trace:2: destination 64 is not in the machine'
}

test_audit_finds_nothing_in_a_whole_machine() {
    local machine
    for machine in $small gemini:x=3,y=4,z=3 seastar:x=4,y=3,z=4 bluegene-l:x=4,y=4,z=4 x1 xd1 xd1-fat-tree \
        k-ary-n-tree hyperx slim-fly dragonfly-plus; do
        call sim audit $machine --pairs 200
        expect_status 0
        expect_out 'free of deadlock'
        expect_out '^adaptive-0 +request '
        expect_out '^nothing found$'
    done
}

test_messages_tell_both_protocols_beside_published_points() {
    call sim messages $small --min 8 --max 16384 --json
    expect_status 0
    json 'all(b["latency_us"] >= a["latency_us"] for a, b in zip(o["points"], o["points"][1:]))'
    json 'all((p["protocol"] == "eager") == (p["bytes"] <= 8192) for p in o["points"])'
    json '[p["source"] for p in o["published"]] == ["XC-3"] and o["points"][0]["bytes"] == 8'
    call sim messages $small --min 8 --max 8
    expect_status 0
    expect_out '^ *8  eager .* latency_us 1.3 \(XC-3\)$'
    call sim messages bluegene-l
    expect_status 1
    expect_error_line 'bluegene-l has no host section'
    call sim messages $small --to 99999
    expect_status 1
    expect_error_line 'aries has nodes 0 to '
    call sim messages $small --min 9 --max 8
    expect_status 2
}

test_audit_tells_of_a_bubble_ring_and_of_each_walk() {
    call sim audit bluegene-l:x=4,y=4,z=4 --pairs 50 --channels 3 --json
    expect_status 0
    json 'o["good"] and o["graph"]["free"] and not o["graph"]["acyclic"] and o["graph"]["other_cycles"] == 0'
    json 'len(o["cycle"]) == 3 and all(c["link"] and c["vc"] == 2 for c in o["cycle"])'
    json 'len(o["walks"]) == 20 and all(w["clean"] and w["arrived"] == w["walks"] > 0 for w in o["walks"])'
}

# Each seventh link is down: packets are accepted that do not arrive.
test_audit_tells_what_broken_links_do() {
    seq -f 'link %g' 1 7 479 >"$dir/faults"
    call sim audit seastar:x=4,y=4,z=4 --pairs 200 --faults "$dir/faults"
    expect_status 1
    expect_out '^FOUND: see above$'
    expect_out ' nid [0-9]+ to [0-9]+$'
    call sim audit seastar:x=4,y=4,z=4 --pairs 200 --faults "$dir/faults" --json
    expect_status 1
    json 'not o["good"] and any(not w["clean"] for w in o["walks"])'
    call sim audit seastar:x=4,y=4,z=4 --faults "$dir/none"
    expect_status 1
    expect_error_line "$dir/none: No such file"
}

test_faults_come_from_a_file() {
    printf '# one blade\nrouter c0-0c0s1a0\nlanes 140 3\n' >"$dir/faults"
    call sim traffic $small --faults "$dir/faults" --time 5 --load 0.2 --json
    expect_status 0
    json 'o["runs"][0]["delivered"] > 0 and o["runs"][0]["unroutable"] + o["runs"][0]["lost"] > 0'
    local line text
    while IFS='|' read -r line text; do
        printf 'node 0\n%s\n' "$line" >"$dir/faults"
        call sim traffic $small --faults "$dir/faults"
        expect_status 1
        expect_error_line "faults:2: $text"
    done <<'LINES'
router 16|the machine has no router 16
router c9-0c0s1a0|'c9-0c0s1a0' is neither
node c0-0c0s1|'c0-0c0s1' is neither
link 99999|the machine has no link 99999
link x|'x' is not the number of a link
lanes 140 16|link 140 has not all the lanes of mask 16
lanes 140|expected 'router X'
cable|expected 'router X'
LINES
}

test_output_is_recorded_and_drawn() {
    local name limit=240 # eight pictures, on a busy machine
    call sim traffic $small --time 5 --load 0.5 --record latency,links,vcs --output "$dir/out.d" --quiet
    expect_status 0
    for name in result.json latency-adaptive-0-0.5.tsv links-adaptive-0-0.5.tsv vcs-adaptive-0-0.5.tsv; do
        [ -s "$dir/out.d/$name" ] || bad "$name is missing or empty"
    done
    [ "$(awk 'END { print NF }' "$dir/out.d/links-adaptive-0-0.5.tsv")" -eq 18 ] || bad 'links have not 18 columns'
    /usr/bin/python3 -c 'import matplotlib' 2>/dev/null || return 0
    for name in load links-adaptive-0-0.5 latency-adaptive-0-0.5 vcs-adaptive-0-0.5; do
        [ -s "$dir/out.d/$name.svg" ] && [ -s "$dir/out.d/$name.png" ] || bad "$name is not drawn"
    done
}

# An interrupt ends run and traffic within moments, and the processes of experiments with them.
test_an_interrupt_leaves_nothing() {
    local words pid
    mapfile -d '' -t words < <(command_line sim traffic aries:groups=8 --load max --quiet)
    "${words[@]}" >"$dir/out" 2>"$dir/err" </dev/null &
    pid=$!
    background+=("$pid")
    wait_until catches_interrupt "$pid" || bad 'traffic does not come up'
    kill -INT "$pid"
    wait "$pid"
    [ $? -eq 130 ] || bad 'traffic does not end with 130'
    grep -q 'interrupted, 0 of 1 runs were done' "$dir/err" || bad "no word of the interrupt: $(cat "$dir/err")"
    mapfile -d '' -t words < <(command_line sim run all --full --quiet --jobs 2)
    "${words[@]}" >"$dir/out" 2>"$dir/err" </dev/null &
    pid=$!
    background+=("$pid")
    wait_until catches_interrupt "$pid" || bad 'run does not come up'
    kill -INT "$pid"
    wait "$pid"
    [ $? -eq 130 ] || bad 'run does not end with 130'
    wait_until nobody_left || bad "left: $(leftovers)"
}

# Bit 1 of the mask of caught signals is SIGINT. Before it becomes the program a child has this shell's mask.
catches_interrupt() {
    local mask
    [ ! "/proc/$1/exe" -ef "/proc/$$/exe" ] || return 1
    mask=$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status" 2>/dev/null)
    [ -n "$mask" ] && (((16#${mask: -4} & 2) != 0))
}

run_tests each_word_has_help_with_an_example wrong_usage_gets_one_precise_line \
    the_list_names_experiments_by_what_they_need run_prints_a_line_per_figure run_keeps_the_order_whatever_runs_first \
    what_is_only_counted_runs_once_for_all_seeds live_experiments_are_told_apart \
    explain_shows_sources_marks_and_overrides explain_knows_every_machine_and_each_value_has_a_word \
    explain_refuses_what_the_loader_refuses the_same_seed_gives_the_same_trace_on_any_threads \
    traffic_prints_throughput_latency_and_speed seeds_give_means_with_intervals saturation_is_found nics_have_their_rates_unless_ideal \
    nodes_have_throughput_and_fairness sizes_are_mixed_and_sources_burst jobs_share_a_machine_by_their_places every_pattern_runs a_trace_file_is_played faults_come_from_a_file \
    audit_finds_nothing_in_a_whole_machine audit_tells_of_a_bubble_ring_and_of_each_walk \
    audit_tells_what_broken_links_do messages_tell_both_protocols_beside_published_points \
    output_is_recorded_and_drawn an_interrupt_leaves_nothing
