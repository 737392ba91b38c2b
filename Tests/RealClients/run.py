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
    with tempfile.TemporaryDirectory() as folder:
        tone = pathlib.Path(folder) / "tone.wav"
        numbers = pathlib.Path(folder) / "numbers.y4m"
        write_sources(tone, numbers)
        record = pathlib.Path(folder) / "record"
        anna = await peers.join(url, hosts.token(bin_path, "mixed", "anna"))
        publisher = peers.Publisher(anna, 660)
        watcher = peers.Watcher(anna, "palbe")
        await publisher.start()
        try:
            with hosts.palbe_call(
                bin_path, "--url", url, "--token", hosts.token(bin_path, "mixed", "palbe"), "--no-e2ee",
                "--audio", str(tone), "--video", str(numbers), "--record", str(record)):
                await until(lambda: len(watcher.numbers) >= 100 and len(watcher.samples) >= 300, 30, "100 frames")
                check_tone(watcher.last_second(), 880, "anna")
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
        check_numbers([media.read_number(luma) for luma in media.read_y4m(videos[0])], 60, "palbe-call")
        samples = media.read_wav(sounds[0])
        assert len(samples) > 2 * media.SAMPLE_RATE, f"palbe-call recorded {len(samples)} samples"
        middle = len(samples) // 2
        check_tone(samples[middle - 24_000 : middle + 24_000], 660, "palbe-call")


FILE_FRAMES = 120


def write_sources(tone: pathlib.Path, numbers: pathlib.Path):
    """A WAV file with 880 Hz and a Y4M file with numbered frames at 30 a second."""
    import wave
    with wave.open(str(tone), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(media.SAMPLE_RATE)
        file.writeframes(media.tone_block(0, 4 * media.SAMPLE_RATE, 880).tobytes())
    with open(numbers, "wb") as file:
        file.write(b"YUV4MPEG2 W640 H360 F30:1 Ip A1:1 C420jpeg\n")
        for number in range(FILE_FRAMES):
            file.write(b"FRAME\n" + media.numbered_frame(number, 640, 360))


TESTS = [two_livekit_clients, two_connections, livekit_and_palbe_call]


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
