"""Chromium with LiveKit's JavaScript client against livekit's Python client and palbe-call."""
import asyncio
import pathlib
import tempfile

import browser
import calls
import hosts
import media
import peers
from checks import (
    PASSPHRASE, check_looping_numbers, check_numbers, check_recording, check_tone, until, write_sources)
from features import collect, frames_within


async def chromium_and_livekit(url: str, bin_path: pathlib.Path):
    """Chromium and livekit see and hear each other, with one connection and with two at livekit's end."""
    async with browser.chromium() as page:
        for single in (True, False):
            room = f"chromium{single}"
            async with (
                peers.joined(url, hosts.signed_token(room, "anna"), single=single) as anna,
                peers.Publisher(anna), peers.Watcher(anna, "chromium") as watcher,
            ):
                await page.call("join", url, hosts.signed_token(room, "chromium"))
                await page.call("publish")
                await page.until("count", "anna", accept=lambda count: count >= 60, seconds=20)
                seen = await page.call("state", "anna")
                check_numbers(seen["numbers"], 60, "chromium")
                check_tone(await page.sound("anna"), 440, "chromium")
                await until(lambda: len(watcher.numbers) >= 60, 20, "60 pictures of Chromium's")
                check_looping_numbers(watcher.numbers, 55, "anna")
                check_tone(watcher.last_second(), 880, "anna")
                await page.call("leave")
                await until(lambda: "chromium" not in anna.remote_participants, 5, "chromium's leaving")


async def chromium_and_palbe_call(url: str, bin_path: pathlib.Path):
    """Chromium and palbe-call see and hear each other, in the clear and encrypted in LiveKit's format."""
    passphrase = PASSPHRASE.decode()
    for arguments, options in ((["--no-e2ee"], {}), (["--e2ee", "livekit"], {"passphrase": passphrase})):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_sources(folder)
            async with browser.chromium() as page:
                await page.call("join", url, hosts.signed_token("mixed", "chromium"), options)
                await page.call("publish")
                with calls.palbe_call_join(
                    url, bin_path, folder, *arguments, environment={"PALBE_PASSPHRASE": passphrase}
                ):
                    await page.until("count", "palbe", accept=lambda count: count >= 60, seconds=20)
                    check_tone(await page.sound("palbe"), 880, "chromium")
                    await asyncio.sleep(2)
                seen = await page.call("state", "palbe")
                check_looping_numbers(seen["numbers"], 60, "chromium")
            check_looping_numbers(check_recording(folder / "record", 40, 880), 40, "palbe-call")


async def chromium_encrypted(url: str, bin_path: pathlib.Path):
    """Chromium and livekit see and hear each other encrypted; with another passphrase Chromium decodes nothing."""
    encrypted = {"encryption": peers.encryption(PASSPHRASE)}
    async with (
        browser.chromium() as page,
        peers.joined(url, hosts.signed_token("secret", "anna"), **encrypted) as anna,
        peers.Publisher(anna), peers.Watcher(anna, "chromium") as watcher,
    ):
        await page.call("join", url, hosts.signed_token("secret", "chromium"), {"passphrase": PASSPHRASE.decode()})
        await page.call("publish")
        await page.until("count", "anna", accept=lambda count: count >= 60, seconds=20)
        check_numbers((await page.call("state", "anna"))["numbers"], 60, "chromium")
        check_tone(await page.sound("anna"), 440, "chromium")
        await until(lambda: len(watcher.numbers) >= 60, 20, "60 pictures of Chromium's")
        check_looping_numbers(watcher.numbers, 55, "anna")
        check_tone(watcher.last_second(), 880, "anna")
        await page.call("leave")
        await page.call("join", url, hosts.signed_token("secret", "stranger"), {"passphrase": "another"})
        await page.until("state", "anna", accept=lambda state: state["video"] == 1 and state["audio"] == 1)
        await asyncio.sleep(3)
        assert not (await page.call("state", "anna"))["numbers"], "Chromium decoded pictures with another passphrase"
        assert media.dominant_frequency(await page.sound("anna")) == 0, "Chromium heard something"


async def packet_trailers(url: str, bin_path: pathlib.Path):
    """Frames with packet trailers, encrypted: livekit reads them, Chromium, which does not know them, sees every picture."""
    encrypted = {"encryption": peers.encryption(PASSPHRASE)}
    async with (
        browser.chromium() as page,
        peers.joined(url, hosts.signed_token("trailers", "anna"), **encrypted) as anna,
        peers.joined(url, hosts.signed_token("trailers", "ben"), single=False, **encrypted) as ben,
        peers.Watcher(ben, "anna") as watcher,
    ):
        await page.call("join", url, hosts.signed_token("trailers", "chromium"), {"passphrase": PASSPHRASE.decode()})
        async with peers.Publisher(anna, numbers_frames=True):
            await page.until("count", "anna", accept=lambda count: count >= 40, seconds=20)
            check_numbers((await page.call("state", "anna"))["numbers"], 40, "chromium")
            await frames_within(watcher, 10, "ben's pictures", least=40)
        check_numbers(watcher.numbers, 40, "ben")
        told = [(seen.frame_id, seen.user_timestamp) for seen in watcher.metadata]
        assert len(told) >= 40 and all(time == 999_999 + number for number, time in told), told[:5]


async def chromium_layers_and_mutes(url: str, bin_path: pathlib.Path):
    """Chromium's layers at livekit and livekit's at Chromium, mutes and repeated subscriptions, both ways."""
    async with (
        browser.chromium() as page,
        peers.joined(url, hosts.signed_token("layers", "anna")) as anna,
        peers.Publisher(anna, width=1280, height=720, simulcast=True), peers.Watcher(anna, "chromium") as watcher,
    ):
        await page.call("join", url, hosts.signed_token("layers", "chromium"), {"simulcast": True})
        await page.call("publish")
        await until(lambda: watcher.width == 640, 15, "Chromium's large picture")
        assert watcher.publication().simulcasted
        for quality, width in ((0, 320), (2, 640)):
            watcher.publication().set_video_quality(quality)
            await until(lambda: watcher.width == width, 10, f"Chromium's pictures {width} wide")
            await frames_within(watcher, 3, f"more of Chromium's pictures {width} wide", least=10)
        await page.until("width", "anna", accept=lambda width: width == 1280, seconds=15)
        for quality, width in ((0, 320), (2, 1280)):
            await page.call("setQuality", "anna", quality)
            await page.until("width", "anna", accept=lambda seen: seen == width, seconds=10)
        # A camera that is switched off and on again.
        muted = collect(anna, "track_muted", "track_unmuted")
        await page.call("enable", False)
        await until(lambda: [event[0] for event in muted] == ["track_muted"], 5, "Chromium's mute")
        await asyncio.sleep(0.5)
        await page.call("enable", True)
        await until(lambda: muted[-1][0] == "track_unmuted", 5, "Chromium's unmute")
        await frames_within(watcher, 3, "Chromium's pictures after its unmute")
        # Subscriptions that end and begin again.
        for attempt in range(2):
            before = await page.call("state", "anna")
            await page.call("subscribe", "anna", False)
            await asyncio.sleep(0.5)
            await page.call("subscribe", "anna", True)
            await page.until(
                "state", "anna", seconds=5, what="pictures of a repeated subscription",
                accept=lambda state: state["video"] == before["video"] + 1
                and len(state["numbers"]) > len(before["numbers"]) + 20)


async def received(watcher: peers.Watcher) -> tuple[int, int, float, str]:
    """Of the video that is watched: bytes, freezes, seconds of freezes, codec."""
    stats = await watcher.publication().track.get_stats()
    inbound = next(stat.inbound_rtp for stat in stats if stat.HasField("inbound_rtp"))
    codec = next(stat.codec.codec.mime_type for stat in stats if stat.HasField("codec"))
    return inbound.inbound.bytes_received, inbound.inbound.freeze_count, inbound.inbound.total_freeze_duration, codec


async def bytes_of_pictures(watcher: peers.Watcher, width: int, codec: str, name: str) -> tuple[int, float]:
    """Of 30 pictures in a row, none larger than asked for and many that large; and the seconds frozen so far."""
    # An encoder that is short of bits leaves the larger size of a picture out, and a busy machine lets the estimate dip:
    # the next pictures are counted then.
    for _ in range(4):
        await until(lambda: watcher.width == width, 10, f"{name}: pictures {width} wide")
        (before, *_), start = await received(watcher), len(watcher.widths)
        await frames_within(watcher, 5, f"{name}: more pictures", least=30)
        after, _, frozen, mime = await received(watcher)
        assert mime.lower() == f"video/{codec}", mime
        widths = watcher.widths[start:]
        if max(widths) == width and widths.count(width) * 2 >= len(widths):
            return after - before, frozen
    raise AssertionError(f"{name}: {watcher.widths[-120:]} wide instead of {width}")


async def chromium_layers_in_one_stream(url: str, bin_path: pathlib.Path):
    """Chromium's VP9 and AV1 with several sizes in one stream: who asks for less gets fewer bytes and smaller pictures."""
    for codec, mode in (("vp9", ""), ("vp9", "L2T3"), ("av1", ""), ("av1", "L2T3")):
        name = f"{codec}{mode}"
        async with (
            # Noise is what a larger picture has more of.
            browser.chromium(noise=12) as page,
            peers.joined(url, hosts.signed_token(name, "anna")) as anna,
            peers.Watcher(anna, "chromium") as watcher,
        ):
            await page.call("join", url, hosts.signed_token(name, "chromium"), {"codec": codec, "scalabilityMode": mode})
            await page.call("publish")
            await until(lambda: watcher.width == 640, 20, f"{name}: the large picture")
            # The client asks for three sizes; of a picture as small as this Chromium's VP9 has two.
            [sent] = await page.call("sent")
            sizes = int(sent["scalabilityMode"][1])
            assert sizes > 1 and sent["scalabilityMode"].endswith("_KEY") == (not mode), sent
            rates = {}
            small = 640 >> sizes - 1
            steps = ((0, small), (1, 320), (2, 640), (0, small), (2, 640))
            for quality, width in steps:
                watcher.publication().set_video_quality(quality)
                rates[width], frozen = await bytes_of_pictures(watcher, width, codec, name)
            print(f"{name}: bytes of 30 pictures by width {rates}, frozen {frozen:.2f} s, sent {await page.call('sent')}")
            assert rates[small] * 5 < rates[640] * 4 and rates[320] < rates[640], rates
            assert frozen < 2, f"{name}: frozen for {frozen} s"
            # What the test itself is too slow to look at is skipped: the client's own count of freezes is what tells.
            readable = sum(number >= 0 for number in watcher.numbers)
            assert readable * 5 >= len(watcher.numbers) * 4, f"{name}: {readable} of {len(watcher.numbers)} readable"


async def chromium_resumes(url: str, bin_path: pathlib.Path):
    """Chromium's signaling is cut: it resumes, media never stops, and what it publishes stays."""
    async with (
        browser.chromium() as page, hosts.Proxy(url) as proxy,
        peers.joined(url, hosts.signed_token("cut", "anna")) as anna,
        peers.Publisher(anna), peers.Watcher(anna, "chromium") as watcher,
    ):
        await page.call("join", proxy.url, hosts.signed_token("cut", "chromium"))
        await page.call("publish")
        async with peers.joined(url, hosts.signed_token("cut", "ben")):
            await page.until("state", "ben", accept=lambda state: state["present"], seconds=5)
            await page.until("count", "anna", accept=lambda count: count >= 20)
            await frames_within(watcher, 10, "Chromium's pictures")
            proxy.cut()
            await asyncio.sleep(0.5)
            await frames_within(watcher, 1, "pictures without signaling")
        proxy.healed.set()
        await page.until("happened", accept=lambda events: "reconnected" in events, seconds=15)
        assert "disconnected" not in await page.call("happened")
        # Ben left while nobody could tell.
        await page.until("state", "ben", accept=lambda state: not state["present"], seconds=5)
        count = await page.call("count", "anna")
        await page.until("count", "anna", accept=lambda seen: seen >= count + 20, seconds=3)
        await frames_within(watcher, 2, "Chromium's pictures after the resumption")
        assert len(watcher.tasks) == 2, f"{len(watcher.tasks)} subscriptions"


TESTS = [
    chromium_and_livekit, chromium_and_palbe_call, chromium_encrypted, packet_trailers, chromium_layers_and_mutes,
    chromium_layers_in_one_stream, chromium_resumes,
]
