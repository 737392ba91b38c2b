"""What an operator's server does: LiveKit's RoomService through PyPI livekit-api, and its webhooks."""
import asyncio
import contextlib
import pathlib

import aiohttp
from aiohttp import web
from livekit import api, rtc
from livekit.protocol import models
from prometheus_client.parser import text_string_to_metric_families

import hosts
import peers
from checks import until

ROOM = "operated"


def service(url: str, key: str = hosts.KEY, secret: str = hosts.SECRET) -> api.LiveKitAPI:
    return api.LiveKitAPI(url.replace("ws://", "http://"), key, secret)


async def fails(call, code: str, status: int):
    """The call fails as Twirp says."""
    try:
        await call
    except api.TwirpError as error:
        assert (error.code, error.status) == (code, status), f"{error}; expected {code} with {status}"
        return
    raise AssertionError(f"the call succeeded; expected {code}")


async def room_service(url: str, bin_path: pathlib.Path):
    """livekit-api makes a room, watches, mutes, renames and removes its participants, and ends it."""
    async with service(url) as server:
        rooms = server.room
        made = await rooms.create_room(api.CreateRoomRequest(name=ROOM, empty_timeout=77, max_participants=5, metadata="m"))
        assert made.sid.startswith("RM_") and (made.empty_timeout, made.max_participants, made.metadata) == (77, 5, "m")
        listed = await rooms.list_rooms(api.ListRoomsRequest())
        assert [room.sid for room in listed.rooms] == [made.sid]
        assert not (await rooms.list_rooms(api.ListRoomsRequest(names=["other"]))).rooms
        async with (
            peers.joined(url, hosts.signed_token(ROOM, "anna")) as anna,
            peers.joined(url, hosts.signed_token(ROOM, "ben")) as ben,
            peers.Publisher(anna) as publisher,
        ):
            await operate(rooms, anna, ben, publisher)
        await rooms.delete_room(api.DeleteRoomRequest(room=ROOM))
        await fails(rooms.delete_room(api.DeleteRoomRequest(room=ROOM)), "not_found", 404)
        assert not (await rooms.list_rooms(api.ListRoomsRequest())).rooms


async def operate(rooms, anna: rtc.Room, ben: rtc.Room, publisher: peers.Publisher):
    events = []
    for name in ("track_muted", "room_metadata_changed", "participant_attributes_changed"):
        ben.on(name, lambda *arguments, name=name: events.append(name))
    gone = []
    anna.on("disconnected", gone.append)

    async def anna_now():
        return await rooms.get_participant(api.RoomParticipantIdentity(room=ROOM, identity="anna"))

    await until(lambda: len(ben.remote_participants) == 1, 10, "anna in ben's room")
    everybody = await rooms.list_participants(api.ListParticipantsRequest(room=ROOM))
    assert sorted(one.identity for one in everybody.participants) == ["anna", "ben"]
    end = hosts.deadline(10)
    while len((await anna_now()).tracks) < 2:
        assert hosts.deadline(0) < end, "anna's tracks were not listed"
        await asyncio.sleep(0.1)
    found = await anna_now()
    assert found.state == models.ParticipantInfo.ACTIVE and found.is_publisher
    microphone = publisher.publications["audio"].sid
    assert {track.sid for track in found.tracks} == {one.sid for one in publisher.publications.values()}

    muted = await rooms.mute_published_track(
        api.MuteRoomTrackRequest(room=ROOM, identity="anna", track_sid=microphone, muted=True))
    assert muted.track.sid == microphone and muted.track.muted
    await until(lambda: "track_muted" in events, 5, "the mute at ben's")
    unmute = api.MuteRoomTrackRequest(room=ROOM, identity="anna", track_sid=microphone, muted=False)
    await fails(rooms.mute_published_track(unmute), "failed_precondition", 412)

    changed = await rooms.update_participant(
        api.UpdateParticipantRequest(room=ROOM, identity="anna", name="Anna", attributes={"hand": "up"}))
    assert (changed.name, dict(changed.attributes)) == ("Anna", {"hand": "up"})
    await until(lambda: ben.remote_participants["anna"].attributes == {"hand": "up"}, 5, "the attribute at ben's")
    await rooms.update_room_metadata(api.UpdateRoomMetadataRequest(room=ROOM, metadata="new"))
    await until(lambda: ben.metadata == "new", 5, "the room's metadata at ben's")

    packets = []
    ben.on("data_received", packets.append)
    anna.on("data_received", packets.append)
    for identities in ([], ["ben"]):
        await rooms.send_data(
            api.SendDataRequest(
                room=ROOM, data=b"hello", kind=models.DataPacket.RELIABLE, topic="t", destination_identities=identities))
    await until(lambda: len(packets) >= 3, 5, "the data of the server")
    assert all((packet.data, packet.topic, packet.participant) == (b"hello", "t", None) for packet in packets), packets

    camera = publisher.publications["video"].sid
    async with peers.Watcher(ben, "anna") as watcher:
        await until(lambda: len(watcher.numbers) >= 5, 10, "anna's pictures at ben's")
        replaced = []
        ben.on("track_unsubscribed", lambda track, publication, _: replaced.append(publication.sid))
        await rooms.update_subscriptions(
            api.UpdateSubscriptionsRequest(room=ROOM, identity="ben", track_sids=[camera], subscribe=False))
        await asyncio.sleep(0.5)
        seen = len(watcher.numbers)
        await asyncio.sleep(1)
        assert len(watcher.numbers) == seen, "pictures went on after the end of ben's subscription"
        # livekit 1.2.1 cannot tell `track_unsubscribed` here, with one connection or two: it drops what libwebrtc says of
        # a section that went inactive (rust-sdks: `on_remove_track` is empty). It tells it of its own unsubscribing, of
        # tracks unpublished, and when a track takes the place of one it still has, as when the subscription comes back.
        back = []
        ben.on("track_subscribed", lambda track, publication, _: back.append(publication.sid))
        await rooms.update_subscriptions(
            api.UpdateSubscriptionsRequest(room=ROOM, identity="ben", track_sids=[camera], subscribe=True))
        await until(lambda: back, 5, "the track's return at ben's")
        assert replaced == back == [camera], (replaced, back)
        await until(lambda: len(watcher.numbers) >= seen + 5, 5, "anna's pictures after the return")

    await fails(
        rooms.get_participant(api.RoomParticipantIdentity(room=ROOM, identity="nobody")), "not_found", 404)
    await rooms.remove_participant(api.RoomParticipantIdentity(room=ROOM, identity="anna"))
    await until(lambda: gone, 5, "anna's removal")
    assert gone[0] == rtc.DisconnectReason.PARTICIPANT_REMOVED, gone
    await until(lambda: not ben.remote_participants, 5, "anna's end at ben's")


async def room_service_refusals(url: str, bin_path: pathlib.Path):
    """Calls without the grant, with another secret, or for what the server cannot do fail as LiveKit's do."""
    async with service(url, secret="another secret of the same length") as stranger:
        await fails(stranger.room.list_rooms(api.ListRoomsRequest()), "unauthenticated", 401)
    async with service(url) as server:
        await fails(server.room.create_room(api.CreateRoomRequest(name="x" * 300)), "invalid_argument", 400)
        await fails(server.room.list_participants(api.ListParticipantsRequest(room="nowhere")), "not_found", 404)
    guest = api.AccessToken(hosts.KEY, hosts.SECRET).with_grants(api.VideoGrants(room_list=True)).to_jwt()
    async with api.LiveKitAPI(url.replace("ws://", "http://"), token=guest) as server:
        assert (await server.room.list_rooms(api.ListRoomsRequest())).rooms is not None
        await fails(server.room.create_room(api.CreateRoomRequest(name="mine")), "unauthenticated", 401)
    async with aiohttp.ClientSession() as session:
        token = api.AccessToken(hosts.KEY, hosts.SECRET).with_grants(api.VideoGrants(room_create=True)).to_jwt()
        address = url.replace("ws://", "http://") + "/twirp/livekit.RoomService/CreateRoom"
        headers = {"Authorization": "Bearer " + token}
        async with session.post(address, json={"name": "json", "emptyTimeout": 5}, headers=headers) as answer:
            body = await answer.json()
            assert answer.status == 200 and body["empty_timeout"] == 5 and body["num_participants"] == 0, body


class Receiver:
    """An operator's server that reads webhooks with livekit-api."""

    def __init__(self):
        self.reader = api.WebhookReceiver(api.TokenVerifier(hosts.KEY, hosts.SECRET))
        self.events: list[api.WebhookEvent] = []
        self.refusals = 0

    async def handle(self, request: web.Request) -> web.Response:
        if not self.refusals:
            self.refusals += 1
            return web.Response(status=503)
        assert request.content_type == "application/webhook+json", request.content_type
        self.events.append(self.reader.receive((await request.read()).decode(), request.headers["Authorization"]))
        return web.Response()

    def names(self) -> list[str]:
        return [event.event for event in self.events]

    @contextlib.asynccontextmanager
    async def running(self):
        application = web.Application()
        application.router.add_post("/hook", self.handle)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, hosts.ADDRESS, 0)
        await site.start()
        try:
            yield f"http://{hosts.ADDRESS}:{runner.addresses[0][1]}/hook"
        finally:
            await runner.cleanup()


async def webhooks(url: str, bin_path: pathlib.Path):
    """livekit-api's WebhookReceiver reads the life of a room, in order, the first event after a refusal."""
    receiver = Receiver()
    async with receiver.running() as hook:
        with hosts.sfu(bin_path, "--webhook", hook, "--departure-timeout", "0s") as url:
            async with peers.joined(url, hosts.signed_token(ROOM, "anna", metadata="m")) as anna:
                async with peers.Publisher(anna, kinds=("audio",)) as publisher:
                    microphone = publisher.publications["audio"].sid
                    await until(lambda: "track_published" in receiver.names(), 15, "the track's webhook")
                    await anna.local_participant.unpublish_track(microphone)
                    await until(lambda: "track_unpublished" in receiver.names(), 10, "the track's end")
            await until(lambda: "room_finished" in receiver.names(), 10, "the room's end")
        expected = [
            "room_started", "participant_joined", "track_published", "track_unpublished", "participant_left", "room_finished"]
        assert receiver.names() == expected, receiver.names()
        joined, published = receiver.events[1], receiver.events[2]
        assert (joined.participant.identity, joined.participant.metadata) == ("anna", "m")
        assert published.track.sid == microphone and published.participant.identity == "anna"
        assert all(event.room.name == ROOM and event.id and event.created_at for event in receiver.events)
        assert len({event.room.sid for event in receiver.events}) == 1


async def remote_calls(url: str, bin_path: pathlib.Path):
    """An operator calls a method of a livekit client and gets its answer, its error, or word that there is none."""
    # livekit-api 1.2.2 has the messages and not the call.
    token = api.AccessToken(hosts.KEY, hosts.SECRET).with_grants(api.VideoGrants(room_admin=True, room=ROOM)).to_jwt()
    address = url.replace("ws://", "http://") + "/twirp/livekit.RoomService/PerformRpc"
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/protobuf"}
    async with aiohttp.ClientSession(headers=headers) as session, peers.joined(url, hosts.signed_token(ROOM, "anna")) as anna:
        callers = []

        @anna.local_participant.register_rpc_method("greet")
        async def greet(call: rtc.RpcInvocationData) -> str:
            callers.append(call.caller_identity)
            if call.payload == "fail":
                raise rtc.RpcError(1_234, "no greeting", "today")
            return call.payload.upper()

        async def call(method: str, payload: str, identity="anna"):
            request = api.PerformRpcRequest(
                room=ROOM, destination_identity=identity, method=method, payload=payload, response_timeout_ms=5_000)
            async with session.post(address, data=request.SerializeToString()) as answer:
                if answer.status == 200:
                    return api.PerformRpcResponse.FromString(await answer.read()).payload
                error = await answer.json()
                return answer.status, error["code"], error.get("meta")

        assert await call("greet", "hello") == "HELLO"
        assert callers == ["server"]
        failure = await call("greet", "fail")
        assert failure == (412, "failed_precondition", {"rpc_code": "1234", "rpc_data": "today"}), failure
        failure = await call("unknown", "")
        assert failure == (412, "failed_precondition", {"rpc_code": "1400"}), failure
        assert await call("greet", "hello", "nobody") == (404, "not_found", None)


async def moves(url: str, bin_path: pathlib.Path):
    """livekit-api moves a livekit client: it goes on in the other room, with what it publishes."""
    async with (
        service(url) as server,
        peers.joined(url, hosts.signed_token(ROOM, "anna")) as anna,
        peers.joined(url, hosts.signed_token(ROOM, "ben")) as ben,
        peers.joined(url, hosts.signed_token("elsewhere", "carl")) as carl,
        peers.Publisher(anna),
        peers.Watcher(carl, "anna") as watcher,
    ):
        await until(lambda: len(ben.remote_participants) == 1, 10, "anna in ben's room")
        request = api.MoveParticipantRequest(room=ROOM, identity="anna", destination_room="elsewhere")
        await server.room.move_participant(request)
        await until(lambda: not ben.remote_participants, 5, "anna's end at ben's")
        await until(lambda: len(watcher.numbers) >= 20, 20, "anna's pictures at carl's")
        await until(lambda: anna.name == "elsewhere" and "carl" in anna.remote_participants, 5, "carl at anna's")
        await fails(server.room.move_participant(request), "not_found", 404)
        await fails(
            server.room.forward_participant(
                api.ForwardParticipantRequest(room="elsewhere", identity="anna", destination_room=ROOM)),
            "unimplemented", 501)


METRICS_PORT, UDP_PORT = 47_889, 47_882


async def metrics(url: str, bin_path: pathlib.Path):
    """prometheus_client reads every line of /metrics; what a call over a network with gaps did is counted there."""
    with hosts.sfu(bin_path, "--prometheus-port", str(METRICS_PORT), "--workers", "1", udp_port=UDP_PORT) as url:
        async with (
            peers.joined(url, hosts.signed_token(ROOM, "anna")) as anna,
            peers.joined(url, hosts.signed_token(ROOM, "ben")) as ben,
            peers.Publisher(anna),
            peers.Watcher(ben, "anna") as watcher,
        ):
            for count in range(20, 140, 20):
                await until(lambda: len(watcher.numbers) >= count, 20, f"{count} pictures")
                # On the way to the server and on the way from it by turns: what is lost is asked for and repaired.
                with hosts.no_udp(f"{'dport' if count % 40 else 'sport'} {UDP_PORT}"):
                    await asyncio.sleep(0.12)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://{hosts.ADDRESS}:{METRICS_PORT}/metrics") as answer:
                    assert answer.status == 200
                    page = await answer.text()
    families = list(text_string_to_metric_families(page))
    samples = {}
    for family in families:
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        assert family.samples, f"{family.name} has no samples"
        for sample in family.samples:
            key = (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items())))
            assert key not in samples, f"{key} is there twice"
            samples[key] = sample.value
    assert len(samples) == sum(bool(line) and line[0] != "#" for line in page.splitlines())
    assert samples[("livekit_room_total",)] == 1 and samples[("livekit_participant_total",)] == 2
    assert samples[("livekit_track_published_total", "kind=VIDEO")] == 1
    for direction in ("incoming", "outgoing"):
        for transmission in ("initial", "retransmit"):
            labels = (f"direction={direction}", f"transmission={transmission}")
            # livekit 1.2.1 repairs without a stream of its own, so that its repairs look like late packets. The library
            # gives every counter the ending "_total".
            least = 0 if (direction, transmission) == ("incoming", "retransmit") else 1
            assert samples[("livekit_packet_total", *labels)] >= least, labels
            assert samples[("livekit_packet_bytes_total", *labels)] >= least, labels
        assert samples[("livekit_nack_total", f"direction={direction}")] > 0, direction
    # Ben asks for the first picture, and so does the server.
    assert samples[("livekit_pli_total", "direction=outgoing")] > 0
    assert samples[("process_resident_memory_bytes",)] > 1e6


TESTS = [room_service, room_service_refusals, webhooks, remote_calls, moves, metrics]
