#!/usr/bin/env python3
"""Real clients against palbe-sfu. Ends with a line 'N passed, N failed' and exit code 1 when one failed."""
import argparse
import asyncio
import pathlib
import sys
import time
import traceback

import browsing
import calls
import features
import hosts
import messages
import networks
import operating
import resuming

TESTS = (
    calls.TESTS + features.TESTS + resuming.TESTS + messages.TESTS + browsing.TESTS + operating.TESTS + networks.TESTS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of palbe-sfu and palbe-call")
    parser.add_argument("--only", nargs="+", help="run these tests, by their functions' names")
    arguments = parser.parse_args()
    hosts.make_network()
    passed = failed = 0
    for test in TESTS:
        if arguments.only and test.__name__ not in arguments.only:
            continue
        begun = time.monotonic()
        try:
            with hosts.sfu(arguments.bin) as url:
                asyncio.run(asyncio.wait_for(test(url, arguments.bin), 90))
            outcome = "ok"
            passed += 1
        except Exception:
            traceback.print_exc()
            outcome = "FAILED"
            failed += 1
        print(f"real clients: {test.__doc__} {outcome} ({time.monotonic() - begun:.1f} s)", flush=True)
    if left := hosts.children():
        print(f"real clients: processes left running: {left}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
