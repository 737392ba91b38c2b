#!/usr/bin/env python3
"""Real clients against palbe-sfu. Ends with a line 'N passed, N failed' and exit code 1 when one failed."""
import argparse
import asyncio
import pathlib
import sys
import tempfile
import traceback

import hosts
import media
import peers


def check_numbers(numbers: list[int], least: int, what: str):
    """In order, none twice, and readable all but a few: a picture in transition may blur a bar."""
    readable = [number for number in numbers if number >= 0]
    assert len(readable) >= least, f"{what}: {len(readable)} readable frames of {len(numbers)}, expected at least {least}"
    late = [pair for pair in zip(readable, readable[1:]) if pair[1] <= pair[0]]
    assert not late, f"{what}: frames out of order or repeated: {late[:3]}"


def check_tone(samples, frequency: float, what: str):
    heard = media.dominant_frequency(samples)
    assert abs(heard - frequency) < 5, f"{what}: heard {heard:.1f} Hz, expected {frequency} Hz"


async def until(condition, seconds: float, what: str):
    end = hosts.deadline(seconds)
    loop = asyncio.get_running_loop()
    while not condition():
        assert loop.time() < end, f"{what} did not happen within {seconds} s"
        await asyncio.sleep(0.05)


async def two_livekit_clients(url: str, bin_path: pathlib.Path, singles=(True, True)):
    """One livekit client publishes a tone and numbered frames; a second one receives them."""
    anna = await peers.join(url, hosts.token(bin_path, "livekit", "anna"), single=singles[0])
    publisher = peers.Publisher(anna, 440)
    await publisher.start()
    ben = await peers.join(url, hosts.token(bin_path, "livekit", "ben"), single=singles[1])
    watcher = peers.Watcher(ben, "anna")
    try:
        await until(lambda: len(watcher.numbers) >= 100 and len(watcher.samples) >= 300, 30, "100 frames")
        check_numbers(watcher.numbers, 95, "ben")
        check_tone(watcher.last_second(), 440, "ben")
        # What left is seen to leave.
        await publisher.stop()
        await anna.disconnect()
        await until(lambda: "anna" not in ben.remote_participants, 10, "anna's leaving")
    finally:
        await publisher.stop()
        await watcher.stop()
        await anna.disconnect()
        await ben.disconnect()


async def two_connections(url: str, bin_path: pathlib.Path):
    """The same with two peer connections each, then with one and two."""
    await two_livekit_clients(url, bin_path, (False, False))
    await two_livekit_clients(url, bin_path, (True, False))
    await two_livekit_clients(url, bin_path, (False, True))


async def livekit_and_palbe_call(url: str, bin_path: pathlib.Path):
    """A livekit client and palbe-call join --no-e2ee see and hear each other."""
    await exchange(url, bin_path, ["--no-e2ee"])


async def encrypted_with_pbkdf2(url: str, bin_path: pathlib.Path):
    """A livekit client with a passphrase and palbe-call join --e2ee livekit see and hear each other encrypted."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "passphrase"
        file.write_bytes(PASSPHRASE + b"\n")
        await exchange(
            url, bin_path, ["--e2ee", "livekit", "--passphrase-file", str(file)], peers.encryption(PASSPHRASE))


async def encrypted_with_hkdf(url: str, bin_path: pathlib.Path):
    """The same with HKDF, the passphrase in palbe-call's environment, and a livekit client that ratchets midway."""
    await exchange(
        url, bin_path, ["--e2ee", "livekit", "--kdf", "hkdf"], peers.encryption(PASSPHRASE, hkdf=True),
        environment={"PALBE_PASSPHRASE": PASSPHRASE.decode()}, ratchets=True)


async def encrypted_with_a_wrong_key(url: str, bin_path: pathlib.Path):
    """With another passphrase neither a livekit client nor palbe-call join --e2ee livekit decodes anything."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_sources(folder)
        (folder / "passphrase").write_bytes(b"another passphrase")
        anna = await peers.join(url, hosts.token(bin_path, "mixed", "anna"), encryption=peers.encryption(PASSPHRASE))
        publisher = peers.Publisher(anna, 660)
        watcher = peers.Watcher(anna, "palbe")
        await publisher.start()
        try:
            with (
                open(folder / "output", "wb") as output,
                palbe_call_join(
                    url, bin_path, folder, "--e2ee", "livekit", "--passphrase-file", str(folder / "passphrase"),
                    output=output),
            ):
                await until(lambda: len(watcher.tasks) == 2, 20, "both subscriptions")
                # Long enough for twice the frames that the tests of the right key ask for.
                sent = publisher.sent
                await until(lambda: publisher.sent >= sent + 200, 30, "200 frames more")
        finally:
            await publisher.stop()
            await watcher.stop()
            await anna.disconnect()
        assert not watcher.numbers, f"anna saw {len(watcher.numbers)} pictures"
        heard = media.dominant_frequency(watcher.last_second())
        assert heard == 0, f"anna heard {heard:.1f} Hz"
        for path in (folder / "record").glob("*.y4m"):
            pictures = sum(1 for _ in media.read_y4m(path))
            assert not pictures, f"palbe-call saw {pictures} pictures"
        for path in (folder / "record").glob("*.wav"):
            loudest = max(abs(media.read_wav(path).astype(int)), default=0)
            assert loudest == 0, f"palbe-call heard something: {loudest}"
        printed = (folder / "output").read_text()
        for kind in ("audio", "video"):
            assert f"anna: cannot decrypt the {kind}" in printed, printed
        assert "another passphrase" not in printed, "palbe-call printed its passphrase"


PASSPHRASE = "correct horse pässwörd".encode()


def palbe_call_join(url: str, bin_path: pathlib.Path, folder: pathlib.Path, *arguments: str, **others):
    """palbe-call in the room 'mixed', sending the sources of `folder` and recording into it."""
    return hosts.palbe_call(
        bin_path, "--url", url, "--token", hosts.token(bin_path, "mixed", "palbe"),
        "--audio", str(folder / "tone.wav"), "--video", str(folder / "numbers.y4m"), "--record", str(folder / "record"),
        *arguments, **others)


async def exchange(
    url: str, bin_path: pathlib.Path, arguments: list[str], encryption=None, environment=None, ratchets=False
):
    """A livekit client and palbe-call see and hear each other."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_sources(folder)
        record = folder / "record"
        anna = await peers.join(url, hosts.token(bin_path, "mixed", "anna"), encryption=encryption)
        publisher = peers.Publisher(anna, 660)
        watcher = peers.Watcher(anna, "palbe")
        ratcheted = None
        await publisher.start()
        try:
            with palbe_call_join(url, bin_path, folder, *arguments, environment=environment):
                await until(lambda: len(watcher.numbers) >= 100 and len(watcher.samples) >= 300, 30, "100 frames")
                check_tone(watcher.last_second(), 880, "anna")
                if ratchets:
                    # From here on anna cannot open what palbe-call sends: her own ratchet moves all that she opens.
                    anna.e2ee_manager.key_provider.ratchet_shared_key(0)
                    ratcheted = publisher.sent
                    await until(lambda: publisher.sent >= ratcheted + 60, 20, "60 frames more")
        finally:
            await publisher.stop()
            await watcher.stop()
            await anna.disconnect()
        # The file loops, so numbers start again: all other steps go forward.
        readable = [number for number in watcher.numbers if number >= 0]
        assert len(readable) >= 95, f"anna: {len(readable)} readable frames"
        backward = sum(b <= a for a, b in zip(readable, readable[1:]))
        assert backward <= len(readable) // FILE_FRAMES + 1, f"anna: {backward} steps backward"
        videos = sorted(record.glob("*.y4m"))
        sounds = sorted(record.glob("*.wav"))
        assert videos and sounds, f"palbe-call recorded {[path.name for path in record.iterdir()]}"
        numbers = [media.read_number(luma) for luma in media.read_y4m(videos[0])]
        check_numbers(numbers, 60, "palbe-call")
        if ratcheted is not None:
            after = sum(number > ratcheted for number in numbers)
            assert after >= 40, f"palbe-call: {after} frames after the ratchet"
        samples = media.read_wav(sounds[0])
        assert len(samples) > 2 * media.SAMPLE_RATE, f"palbe-call recorded {len(samples)} samples"
        middle = len(samples) // 2
        check_tone(samples[middle - 24_000 : middle + 24_000], 660, "palbe-call")


FILE_FRAMES = 120


def write_sources(folder: pathlib.Path):
    """tone.wav with 880 Hz and numbers.y4m with numbered frames at 30 a second."""
    import wave
    with wave.open(str(folder / "tone.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(media.SAMPLE_RATE)
        file.writeframes(media.tone_block(0, 4 * media.SAMPLE_RATE, 880).tobytes())
    with open(folder / "numbers.y4m", "wb") as file:
        file.write(b"YUV4MPEG2 W640 H360 F30:1 Ip A1:1 C420jpeg\n")
        for number in range(FILE_FRAMES):
            file.write(b"FRAME\n" + media.numbered_frame(number, 640, 360))


TESTS = [
    two_livekit_clients, two_connections, livekit_and_palbe_call, encrypted_with_pbkdf2, encrypted_with_hkdf,
    encrypted_with_a_wrong_key,
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of palbe-sfu and palbe-call")
    parser.add_argument("--only", help="run one test")
    arguments = parser.parse_args()
    hosts.make_network()
    passed = failed = 0
    for test in TESTS:
        if arguments.only and test.__name__ != arguments.only:
            continue
        try:
            with hosts.sfu(arguments.bin) as url:
                asyncio.run(asyncio.wait_for(test(url, arguments.bin), 90))
            print(f"real clients: {test.__doc__} ok", flush=True)
            passed += 1
        except Exception:
            traceback.print_exc()
            print(f"real clients: {test.__doc__} FAILED", flush=True)
            failed += 1
    if left := hosts.children():
        print(f"real clients: processes left running: {left}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
