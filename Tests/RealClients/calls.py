"""Calls between livekit clients and palbe-call, in the clear and encrypted."""
import pathlib
import tempfile

import hosts
import media
import peers
from checks import (
    PASSPHRASE, check_looping_numbers, check_numbers, check_recording, check_tone, until, write_sources)


async def two_livekit_clients(url: str, bin_path: pathlib.Path, singles=(True, True), watcher_url=None):
    """One livekit client publishes a tone and numbered frames; a second one receives them."""
    anna = await peers.join(url, hosts.token(bin_path, "livekit", "anna"), single=singles[0])
    publisher = peers.Publisher(anna, 440)
    await publisher.start()
    ben = await peers.join(watcher_url or url, hosts.token(bin_path, "livekit", "ben"), single=singles[1])
    watcher = peers.Watcher(ben, "anna")
    try:
        await until(lambda: len(watcher.numbers) >= 60 and len(watcher.samples) >= 200, 30, "60 frames")
        check_numbers(watcher.numbers, 55, "ben")
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
    async def ratchet(anna, watcher):
        # From here on anna cannot open what palbe-call sends: her own ratchet moves all that she opens.
        anna.e2ee_manager.key_provider.ratchet_shared_key(0)

    await exchange(
        url, bin_path, ["--e2ee", "livekit", "--kdf", "hkdf"], peers.encryption(PASSPHRASE, hkdf=True),
        environment={"PALBE_PASSPHRASE": PASSPHRASE.decode()}, midway=ratchet)


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
                # Long enough for the frames that the tests of the right key ask for.
                sent = publisher.sent
                await until(lambda: publisher.sent >= sent + 120, 30, "120 frames more")
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


def palbe_call_join(url: str, bin_path: pathlib.Path, folder: pathlib.Path, *arguments: str, **others):
    """palbe-call in the room 'mixed', sending the sources of `folder` and recording into it."""
    return hosts.palbe_call(
        bin_path, "--url", url, "--token", hosts.token(bin_path, "mixed", "palbe"),
        "--audio", str(folder / "tone.wav"), "--video", str(folder / "numbers.y4m"), "--record", str(folder / "record"),
        *arguments, **others)


async def exchange(
    url: str, bin_path: pathlib.Path, arguments: list[str], encryption=None, environment=None, midway=None, loops=0
):
    """A livekit client and palbe-call see and hear each other; palbe-call also after `midway` was called. Its file may
    begin `loops` times more than the pictures that came show."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_sources(folder)
        record = folder / "record"
        anna = await peers.join(url, hosts.token(bin_path, "mixed", "anna"), encryption=encryption)
        publisher = peers.Publisher(anna, 660)
        watcher = peers.Watcher(anna, "palbe")
        called = None
        await publisher.start()
        try:
            with palbe_call_join(url, bin_path, folder, *arguments, environment=environment):
                await until(lambda: len(watcher.numbers) >= 80 and len(watcher.samples) >= 250, 30, "80 frames")
                check_tone(watcher.last_second(), 880, "anna")
                if midway:
                    await midway(anna, watcher)
                    called = publisher.sent
                    await until(lambda: publisher.sent >= called + 60, 20, "60 frames more")
        finally:
            await publisher.stop()
            await watcher.stop()
            await anna.disconnect()
        check_looping_numbers(watcher.numbers, 75, "anna", loops)
        numbers = check_recording(record, 40, 660)
        check_numbers(numbers, 40, "palbe-call")
        if called is not None:
            after = sum(number > called for number in numbers)
            assert after >= 40, f"palbe-call: {after} frames after what came midway"


TESTS = [
    two_livekit_clients, two_connections, livekit_and_palbe_call, encrypted_with_pbkdf2, encrypted_with_hkdf,
    encrypted_with_a_wrong_key,
]
