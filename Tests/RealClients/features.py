"""What livekit clients do besides sending and receiving, each with one peer connection and with two."""
import asyncio
import contextlib
import functools
import pathlib

from livekit import rtc

import hosts
import peers
from checks import PASSPHRASE, check_numbers, until


def both_ways(test):
    """Runs the test with one peer connection and with two."""

    @functools.wraps(test)
    async def run(url: str, bin_path: pathlib.Path):
        for single in (True, False):
            try:
                await asyncio.wait_for(test(functools.partial(enter, url, single)), 40)
            except Exception as error:
                raise AssertionError(f"with {'one connection' if single else 'two connections'}: {error!r}") from error

    return run


def enter(url: str, single: bool, identity: str, *, room: str = "features", options: dict | None = None, **claims):
    """A client in the room for a block."""
    return peers.joined(
        url, hosts.signed_token(room + ("1" if single else "2"), identity, **claims), single=single, **(options or {}))


def collect(room: rtc.Room, *names: str) -> list[tuple]:
    """What the room tells by the events of these names, in order."""
    events: list[tuple] = []
    for name in names:
        room.on(name, lambda *arguments, name=name: events.append((name, *arguments)))
    return events


async def frames_within(watcher: peers.Watcher, seconds: float, what: str, least: int = 3):
    """Some pictures more, soon."""
    seen = len(watcher.numbers)
    await until(lambda: len(watcher.numbers) >= seen + least, seconds, what)


@both_ways
async def mute_and_unmute(enter):
    """A mute is seen by others, nothing is sent meanwhile, and pictures are back within 2 s."""
    async with enter("anna") as anna, enter("ben") as ben, peers.Publisher(anna) as publisher:
        events = collect(ben, "track_muted", "track_unmuted")
        async with peers.Watcher(ben, "anna") as watcher:
            await frames_within(watcher, 10, "the first pictures")
            for kind in ("audio", "video"):
                publication = publisher.publications[kind]
                publication.track.mute()
                await until(lambda: events, 5, f"the mute of {kind}")
                name, participant, seen = events.pop()
                assert name == "track_muted" and participant.identity == "anna" and seen.sid == publication.sid
                assert seen.muted
                if kind == "video":
                    await asyncio.sleep(0.5)
                    before = len(watcher.numbers)
                    await asyncio.sleep(1)
                    assert len(watcher.numbers) <= before, f"{len(watcher.numbers) - before} pictures while muted"
                publication.track.unmute()
                await until(lambda: events, 5, f"the unmute of {kind}")
                name, _, seen = events.pop()
                assert name == "track_unmuted" and not seen.muted
            await frames_within(watcher, 2, "pictures after the unmute")


@both_ways
async def metadata_attributes_and_name(enter):
    """Name, metadata and attributes come from the token, change where the grant allows it, and late joiners see them."""
    claims = {"name": "Anna", "metadata": "from the token", "attributes": {"hand": "down", "seat": "3"}}
    async with enter("anna", canUpdateOwnMetadata=True, **claims) as anna, enter("ben") as ben:
        seen = ben.remote_participants["anna"]
        assert (seen.name, seen.metadata, seen.attributes) == ("Anna", "from the token", claims["attributes"])
        await anna.local_participant.set_metadata("changed")
        await anna.local_participant.set_name("Anna B.")
        await anna.local_participant.set_attributes({"hand": "up", "seat": ""})
        expected = ("Anna B.", "changed", {"hand": "up"})
        await until(lambda: (seen.name, seen.metadata, dict(seen.attributes)) == expected, 5, "anna's changes")
        async with enter("cleo") as cleo:
            late = cleo.remote_participants["anna"]
            assert (late.name, late.metadata, dict(late.attributes)) == expected
        # Ben may not, and nobody sees him try.
        try:
            await asyncio.wait_for(ben.local_participant.set_metadata("refused"), 5)
        except Exception:
            pass
        await asyncio.sleep(0.3)
        assert anna.remote_participants["ben"].metadata == ""


@both_ways
async def permissions(enter):
    """canPublish, canSubscribe and a publisher's own subscription permissions hold, and can be given again."""
    async with enter("anna") as anna, enter("ben", canPublish=False) as ben, enter("cleo", canSubscribe=False) as cleo:
        try:
            await asyncio.wait_for(peers.Publisher(ben, kinds=("audio",)).start(), 12)
            raise AssertionError("ben published without canPublish")
        except rtc.participant.PublishTrackError:
            pass
        async with (
            peers.Publisher(anna) as publisher, peers.Watcher(ben, "anna") as allowed,
            peers.Watcher(cleo, "anna") as refused,
        ):
            await frames_within(allowed, 10, "ben's pictures")
            assert not refused.tasks, "cleo was subscribed without canSubscribe"
            lost = collect(ben, "track_unsubscribed")
            anna.local_participant.set_track_subscription_permissions(allow_all_participants=False)
            await asyncio.sleep(0.5)
            before = len(allowed.numbers)
            await asyncio.sleep(1)
            more = len(allowed.numbers) - before
            assert more == 0, f"{more} pictures after the permission was taken away ({len(lost)} unsubscribed)"
            anna.local_participant.set_track_subscription_permissions(
                allow_all_participants=False,
                participant_permissions=[
                    rtc.ParticipantTrackPermission(participant_identity="ben", allow_all=True)])
            await frames_within(allowed, 3, "pictures after the permission was given")
            assert publisher.sent > 0


@both_ways
async def simulcast_layers(enter):
    """A subscriber that asks for the low layer gets small pictures, then large ones again, and never stands still."""
    async with (
        enter("anna") as anna, enter("ben") as ben,
        peers.Publisher(anna, width=1280, height=720, simulcast=True, kinds=("video",)),
        peers.Watcher(ben, "anna") as watcher,
    ):
        await until(lambda: watcher.width == 1280, 15, "the large picture")
        publication = watcher.publication()
        assert publication.simulcasted
        for quality, width in ((0, 320), (2, 1280), (1, 640)):
            publication.set_video_quality(quality)
            await until(lambda: watcher.width == width, 8, f"pictures {width} wide")
            await frames_within(watcher, 2, f"more pictures {width} wide", least=15)
        # Where the layer changes, one picture may come twice.
        numbers = [number for index, number in enumerate(watcher.numbers) if number not in watcher.numbers[:index][-1:]]
        check_numbers(numbers, 40, "ben")


@both_ways
async def subscriptions(enter):
    """Unsubscribe and subscribe again, without auto_subscribe, and who joins late: pictures within 2 s."""
    async with enter("anna") as anna, peers.Publisher(anna), enter("ben", options={"auto_subscribe": False}) as ben:
        async with peers.Watcher(ben, "anna") as watcher:
            await until(lambda: watcher.publication() is not None, 5, "anna's publication")
            await asyncio.sleep(0.5)
            assert not watcher.tasks, "subscribed without being asked"
            for attempt in range(3):
                watcher.publication().set_subscribed(True)
                await frames_within(watcher, 2, f"pictures after subscription {attempt}")
                watcher.publication().set_subscribed(False)
                await asyncio.sleep(0.5)
                before = len(watcher.numbers)
                await asyncio.sleep(0.5)
                assert len(watcher.numbers) == before, "pictures after the unsubscription"
            assert len(watcher.tasks) == 3, f"{len(watcher.tasks)} subscriptions"
        for late in ("cleo", "dora"):
            async with enter(late) as room, peers.Watcher(room, "anna") as watcher:
                await frames_within(watcher, 2, f"{late}'s first picture", least=1)


@both_ways
async def duplicate_identity(enter):
    """Who joins under an identity that is there takes its place: the old session is told, others see one participant."""
    async with enter("ben") as ben, enter("anna") as first:
        events = collect(first, "disconnected")
        async with enter("anna") as second, peers.Publisher(second), peers.Watcher(ben, "anna") as watcher:
            await until(lambda: events, 5, "the old session's end")
            assert events[0][1] == rtc.DisconnectReason.DUPLICATE_IDENTITY, events
            await frames_within(watcher, 10, "the new session's pictures")
            assert list(ben.remote_participants) == ["anna"]
            assert ben.remote_participants["anna"].sid == second.local_participant.sid


@both_ways
async def screen_shares_one_after_another(enter):
    """livekit#2321 (21): encrypted screen shares that end and begin again, of other publishers too, are all readable."""
    options = {"encryption": peers.encryption(PASSPHRASE)}
    async with (
        enter("anna", options=options) as anna, enter("ben", options=options) as ben,
        enter("cleo", options=options) as cleo,
        peers.Publisher(anna), peers.Watcher(cleo, "anna") as camera,
    ):
        screen = rtc.TrackSource.SOURCE_SCREENSHARE
        await frames_within(camera, 10, "anna's camera")
        for room, width in ((ben, 480), (anna, 320), (ben, 480)):
            watcher = peers.Watcher(cleo, room.local_participant.identity)
            publisher = peers.Publisher(room, width=width, height=240, source=screen, kinds=("video",))
            await publisher.start()
            await until(
                lambda: watcher.width == width or any(n >= 0 for n in watcher.numbers[-3:]), 5, "a screen share's picture")
            seen = len(watcher.numbers)
            await until(lambda: sum(n >= 0 for n in watcher.numbers[seen:]) >= 8, 5, "readable pictures of it")
            await publisher.unpublish()
            await watcher.stop()
        await frames_within(camera, 2, "anna's camera afterwards")


async def many_participants(url: str, bin_path: pathlib.Path):
    """client-sdk-js#1429 (9): with 20 participants in the room, who joins late sees no track that was unpublished."""
    async with contextlib.AsyncExitStack() as stack:
        rooms = []
        for start in range(0, 20, 5):
            rooms += await asyncio.gather(*(
                stack.enter_async_context(peers.joined(
                    url, hosts.signed_token("many", f"guest{number}"), single=number % 2 == 0, auto_subscribe=False))
                for number in range(start, start + 5)))
        publishers = [peers.Publisher(room, kinds=("audio",)) for room in rooms]
        for publisher in publishers:
            await publisher.start()
            stack.push_async_callback(publisher.stop)
        for publisher in publishers[::2]:
            await publisher.unpublish()
        expected = {room.local_participant.identity for room in rooms[1::2]}

        def published(room: rtc.Room) -> set[str]:
            return {name for name, seen in room.remote_participants.items() if seen.track_publications}

        for single in (True, False):
            late = await stack.enter_async_context(peers.joined(
                url, hosts.signed_token("many", f"late{single}"), single=single, auto_subscribe=False))
            assert len(late.remote_participants) >= 20
            assert published(late) == expected, f"late joiner sees tracks of {sorted(published(late) ^ expected)}"
        for room in rooms[::2]:
            await until(lambda: published(room) == expected, 5, "everybody's knowledge of what was unpublished")


TESTS = [
    mute_and_unmute, metadata_attributes_and_name, permissions, simulcast_layers, subscriptions, duplicate_identity,
    screen_shares_one_after_another, many_participants,
]
