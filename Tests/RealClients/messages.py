"""Data between livekit clients, and between one and Chromium."""
import asyncio
import contextlib
import pathlib

from livekit import rtc
from livekit.rtc.participant import PublishDataTrackError

import browser
import hosts
import peers
from checks import PASSPHRASE, until
from features import both_ways, collect


def texts(events: list[tuple]) -> list[str]:
    return [packet.data.decode() for _, packet in events]


@both_ways
async def data_packets(enter):
    """Reliable data in order to everybody but its sender, lossy data, topics, named receivers, and who may not send."""
    async with enter("anna") as anna, enter("ben") as ben, enter("cleo", canPublishData=False) as cleo:
        seen = {name: collect(room, "data_received") for name, room in (("anna", anna), ("ben", ben), ("cleo", cleo))}
        for number in range(100):
            await anna.local_participant.publish_data(f"{number}", topic="count")
        for name in ("ben", "cleo"):
            await until(lambda: len(seen[name]) >= 100, 5, f"{name}'s data")
            assert texts(seen[name]) == [str(number) for number in range(100)]
            packet = seen[name][0][1]
            assert packet.participant.identity == "anna" and packet.topic == "count"
        assert not seen["anna"], "anna heard herself"
        await anna.local_participant.publish_data("lossy", reliable=False)
        await until(lambda: texts(seen["ben"])[-1] == "lossy", 5, "lossy data")
        before = len(seen["cleo"])
        await until(lambda: texts(seen["cleo"])[-1] == "lossy", 5, "lossy data")
        await anna.local_participant.publish_data("for ben", destination_identities=["ben"])
        await anna.local_participant.publish_data("x" * 40_000)
        await until(lambda: len(texts(seen["cleo"])[-1]) == 40_000, 5, "a large packet")
        assert "for ben" in texts(seen["ben"]) and "for ben" not in texts(seen["cleo"])
        assert len(seen["cleo"]) >= before
        try:
            await asyncio.wait_for(cleo.local_participant.publish_data("refused"), 3)
        except Exception:
            pass
        await asyncio.sleep(0.3)
        assert "refused" not in texts(seen["ben"]) + texts(seen["anna"])


@both_ways
async def calls_and_streams(enter):
    """RPC and text streams, in the clear and encrypted end to end."""
    for options in ({}, {"encryption": peers.encryption(PASSPHRASE)}):
        async with enter("anna", options=options) as anna, enter("ben", options=options) as ben:

            @ben.local_participant.register_rpc_method("double")
            async def double(call):
                return call.payload * 2

            heard = asyncio.Queue()

            def received(reader, identity):
                asyncio.create_task(read(reader, identity))

            async def read(reader, identity):
                heard.put_nowait((identity, await reader.read_all()))

            ben.register_text_stream_handler("story", received)
            answer = await anna.local_participant.perform_rpc(
                destination_identity="ben", method="double", payload="ab", response_timeout=5)
            assert answer == "abab"
            await anna.local_participant.send_text("once upon a time " * 2_000, topic="story")
            assert await asyncio.wait_for(heard.get(), 5) == ("anna", "once upon a time " * 2_000)


async def data_over_a_cut(url: str, bin_path: pathlib.Path):
    """Reliable data that is sent while signaling is cut arrives, once and in order, with one connection and with two."""
    for single in (True, False):
        room = f"data{single}"
        async with (
            hosts.Proxy(url) as proxy,
            peers.joined(proxy.url, hosts.signed_token(room, "anna"), single=single) as anna,
            peers.joined(proxy.url, hosts.signed_token(room, "ben"), single=single) as ben,
        ):
            seen = collect(ben, "data_received")
            back = collect(ben, "reconnected"), collect(anna, "reconnected")
            for number in range(60):
                if number == 20:
                    proxy.cut()
                    asyncio.get_running_loop().call_later(1, proxy.healed.set)
                # While a client resumes, what it is asked to send waits.
                await asyncio.wait_for(anna.local_participant.publish_data(f"{number}"), 10)
                await asyncio.sleep(0.02)
            await until(lambda: all(back), 15, "the resumptions")
            await anna.local_participant.publish_data("last")
            await until(lambda: seen and texts(seen)[-1] == "last", 5, "what was sent last")
            assert texts(seen) == [*(str(number) for number in range(60)), "last"], texts(seen)


async def remote_track(room: rtc.Room, events: list[tuple], name: str) -> rtc.RemoteDataTrack:
    await until(lambda: any(track.info.name == name for _, track in events), 5, f"the data track {name}")
    return next(track for _, track in events if track.info.name == name)


@contextlib.asynccontextmanager
async def received_frames(track: rtc.RemoteDataTrack):
    """The frames of a data track for a block; it is subscribed to that long."""
    frames: list[rtc.DataTrackFrame] = []
    stream = track.subscribe(buffer_size=200)

    async def read():
        async for frame in stream:
            frames.append(frame)

    task = asyncio.create_task(read())
    try:
        yield frames, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        stream.close()


async def push_until_heard(track: rtc.LocalDataTrack, frames: list, what: str):
    """Frames until the first arrives: those before the subscription is made are for nobody."""
    for _ in range(200):
        track.try_push(rtc.DataTrackFrame(payload=b"are you there"))
        await asyncio.sleep(0.05)
        if frames:
            return frames.clear()
    raise AssertionError(f"{what}: no frame within 10 s")


@both_ways
async def data_tracks(enter):
    """Data tracks both ways, in the clear and encrypted end to end: timestamps, long frames, names taken twice, their end."""
    for options in ({}, {"encryption": peers.encryption(PASSPHRASE)}):
        async with enter("anna", options=options) as anna, enter("ben", options=options) as ben:
            told = {"anna": collect(anna, "data_track_published"), "ben": collect(ben, "data_track_published")}
            ended = collect(ben, "data_track_unpublished")
            local = await asyncio.wait_for(anna.local_participant.publish_data_track(name="pose"), 5)
            back = await asyncio.wait_for(ben.local_participant.publish_data_track(name="force"), 5)
            remote = await remote_track(ben, told["ben"], "pose")
            assert remote.publisher_identity == "anna" and remote.info.sid == local.info.sid
            assert remote.info.uses_e2ee == bool(options)
            async with (
                received_frames(remote) as (frames, reading),
                received_frames(await remote_track(anna, told["anna"], "force")) as (returned, _),
            ):
                await push_until_heard(local, frames, "ben")
                await push_until_heard(back, returned, "anna")
                for number in range(100):
                    local.try_push(rtc.DataTrackFrame(payload=b"%d" % number, user_timestamp=1_000 + number))
                    back.try_push(rtc.DataTrackFrame(payload=b"back %d" % number))
                    await asyncio.sleep(0.01)
                local.try_push(rtc.DataTrackFrame(payload=b"x" * 40_000))
                await until(lambda: frames and len(frames[-1].payload) == 40_000, 5, "a long frame")
                numbers = [int(frame.payload) for frame in frames[:-1] if frame.payload[:1].isdigit()]
                # Clients drop packets where they are kept from reading for some milliseconds.
                assert len(numbers) > 60 and numbers == sorted(set(numbers)), numbers
                assert all(frame.user_timestamp == 1_000 + int(frame.payload)
                           for frame in frames if frame.payload[:1].isdigit())
                assert len(returned) > 60 and returned[-1].payload.startswith(b"back "), len(returned)
                try:
                    await asyncio.wait_for(anna.local_participant.publish_data_track(name="pose"), 5)
                except PublishDataTrackError:
                    pass
                else:
                    raise AssertionError("a name was taken twice")
                await local.unpublish()
                await until(lambda: ended, 5, "the end of a data track")
                assert ended[0][1] == local.info.sid and not remote.is_published()
                await asyncio.wait_for(reading, 5)
    async with enter("cleo", canPublishData=False) as cleo:
        try:
            await asyncio.wait_for(cleo.local_participant.publish_data_track(name="no"), 5)
        except PublishDataTrackError:
            return
        raise AssertionError("who may not send data has a data track")


async def data_tracks_over_a_cut(url: str, bin_path: pathlib.Path):
    """A data track goes on over cut signaling, with one connection and with two, and a subscription made afterwards works."""
    for single in (True, False):
        room = f"tracks{single}"
        async with (
            hosts.Proxy(url) as proxy,
            peers.joined(proxy.url, hosts.signed_token(room, "anna"), single=single) as anna,
            peers.joined(proxy.url, hosts.signed_token(room, "ben"), single=single) as ben,
        ):
            told = collect(ben, "data_track_published")
            back = collect(ben, "reconnected"), collect(anna, "reconnected")
            local = await asyncio.wait_for(anna.local_participant.publish_data_track(name="pose"), 5)
            remote = await remote_track(ben, told, "pose")
            async with received_frames(remote) as (frames, _):
                await push_until_heard(local, frames, "ben")
                proxy.cut()
                await push_until_heard(local, frames, "ben without signaling")
                proxy.healed.set()
                await until(lambda: all(back), 15, "the resumptions")
                await push_until_heard(local, frames, "ben after the resumption")
                second = await asyncio.wait_for(anna.local_participant.publish_data_track(name="second"), 5)
                async with received_frames(await remote_track(ben, told, "second")) as (more, _):
                    await push_until_heard(second, more, "ben's second track")


async def data_with_chromium(url: str, bin_path: pathlib.Path):
    """Chromium and livekit send each other data."""
    async with browser.chromium() as page, peers.joined(url, hosts.signed_token("data", "anna")) as anna:
        seen = collect(anna, "data_received")
        await page.call("join", url, hosts.signed_token("data", "chromium"))
        await page.call("sendData", "from the browser")
        await until(lambda: seen, 5, "Chromium's data")
        assert texts(seen) == ["from the browser"] and seen[0][1].participant.identity == "chromium"
        await anna.local_participant.publish_data("from Python")
        state = await page.until("state", "anna", accept=lambda state: state["data"], seconds=5)
        assert state["data"] == ["from Python"], state["data"]


TESTS = [data_packets, calls_and_streams, data_over_a_cut, data_tracks, data_tracks_over_a_cut, data_with_chromium]
