#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_guide.py itself, with guides that have to fail and one that has not: `test_run_guide.py`. TAP."""

import contextlib
import io
import pathlib
import sys
import tempfile

import run_guide

GOOD = """
    export WORD=one
    cd docs; cd ..

Text, and a file:

<!-- file: own.sh -->

    echo "$WORD" >own.out

    echo two >>own.out

<!-- prints: two -->
```
. ./own.sh
cat own.out
```

<!-- not run: hours -->

    false

<!-- needs: test -d no-such-folder -->

    false

<!-- needs: test -d docs -->

    export NEEDED=1

<!-- before: mkdir made -->
<!-- fails: cannot -->

    echo cannot; exit 3

Text

    test "$NEEDED" && test -d made && test -L docs && test -e build/here
"""

# By what is wrong: a guide, and what has to be said about it.
BAD = {
    "a failing command": ("    true\n    false\n    true\n", "a command failed"),
    "a failing part of a pipe": ("    false | cat\n", "a command failed"),
    "a failing first block": ("    false\n\nText\n\n    true\n", "not reached"),
    "a command that is not there": ("    no-such-command-at-all\n", "not found"),
    "an error that does not come": ("<!-- fails: x -->\n\n    echo x\n", "ended with status 0"),
    "another error": ("<!-- fails: y -->\n\n    echo x; false\n", "does not print 'y' but"),
    "another output": ("<!-- prints: y -->\n\n    echo x\n", "does not print 'y' but"),
    "a preparation that fails": ("<!-- before: false -->\n\n    true\n", "not reached"),
    "a block with what it needs": ("<!-- needs: true -->\n\n    false\n", "a command failed"),
    "an unknown comment": ("<!-- skip: x -->\n\n    true\n", "not one of the comments"),
    "no reason": ("<!-- not run: -->\n\n    true\n", "not one of the comments"),
    "a comment without a block": ("<!-- not run: x -->\n\nText\n", "without a block"),
    "a fence without an end": ("```\ntrue\n", "without an end"),
}


def run(text, folder):
    """Whether the guide is well, and what is printed."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            is_well = run_guide.run_guide(text, "guide.md", folder / "build", folder / "source", 0)
        except run_guide.Wrong as wrong:
            print(wrong)
            is_well = False
    return is_well, output.getvalue()


def main():
    print(f"1..{len(BAD) + 1}")
    all_well = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "source" / "docs").mkdir(parents=True)
        (folder / "build").mkdir()
        (folder / "build" / "here").touch()
        is_well, output = run(GOOD, folder)
        good = is_well and "# 5 blocks run, 2 not run" in output and not (folder / "source" / "made").exists()
        print("".join(f"# {line}\n" for line in output.splitlines()), end="")
        print(f"{'ok' if good else 'not ok'} 1 - a guide that is well")
        all_well = good
        for n, (what, (text, said)) in enumerate(BAD.items()):
            is_well, output = run(text, folder)
            good = not is_well and said in output
            if not good:
                print("".join(f"# {line}\n" for line in output.splitlines()), end="")
            print(f"{'ok' if good else 'not ok'} {n + 2} - {what} is found")
            all_well = all_well and good
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main())
