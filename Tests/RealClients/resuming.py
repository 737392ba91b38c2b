"""What a livekit client and the SFU do when signaling breaks."""
import asyncio
import pathlib

from livekit.rtc import SimulateScenarioKind

import hosts
import peers
from checks import check_tone, until
from features import collect, frames_within


async def signaling_is_cut(url: str, bin_path: pathlib.Path):
    """A cut WebSocket is resumed, of publisher and subscriber, with one connection and with two: media never stops."""
    for single in (True, False):
        room_name = f"cut{single}"
        async with hosts.Proxy(url) as proxy:
            async with (
                peers.joined(proxy.url, hosts.signed_token(room_name, "anna"), single=single) as anna,
                peers.joined(proxy.url, hosts.signed_token(room_name, "ben"), single=single) as ben,
                peers.joined(url, hosts.signed_token(room_name, "cleo")) as cleo,
                peers.Publisher(anna), peers.Watcher(ben, "anna") as watcher,
            ):
                await frames_within(watcher, 10, "the first pictures")
                events = collect(ben, "reconnecting", "reconnected", "disconnected")
                hers = collect(anna, "reconnecting", "reconnected", "disconnected")
                others = collect(cleo, "participant_disconnected")
                proxy.cut()
                # Media goes on while nobody can signal.
                await asyncio.sleep(0.5)
                await frames_within(watcher, 1, "pictures without signaling")
                # Somebody comes meanwhile: the snapshot tells of it.
                async with peers.joined(url, hosts.signed_token(room_name, "dora")):
                    proxy.healed.set()
                    for name, seen in (("ben", events), ("anna", hers)):
                        await until(lambda: any(e[0] == "reconnected" for e in seen), 15, f"{name}'s resumption")
                    await frames_within(watcher, 2, "pictures after the resumption")
                    await until(lambda: "dora" in ben.remote_participants, 5, "ben's knowledge of dora")
                await until(lambda: "dora" not in ben.remote_participants, 5, "dora's leaving")
                gone = [event for event in others if event[1].identity != "dora"]
                assert not gone, f"others saw {gone}"
                assert not any(e[0] == "disconnected" for e in events + hers)
                # One subscription each, never made anew: it was no new session.
                assert len(watcher.tasks) == 2, f"{len(watcher.tasks)} subscriptions"
                # Signaling works again in both directions.
                publication = next(iter(anna.local_participant.track_publications.values()))
                muted = collect(ben, "track_muted")
                publication.track.mute()
                await until(lambda: muted, 5, "a mute after the resumption")
                publication.track.unmute()
                await until(lambda: len(watcher.last_second()) > 40_000, 5, "sound")


async def full_reconnects(url: str, bin_path: pathlib.Path):
    """A client that starts over is a new session of its identity, and everything it published is received again."""
    for single in (True, False):
        room_name = f"full{single}"
        async with (
            peers.joined(url, hosts.signed_token(room_name, "anna"), single=single) as anna,
            peers.joined(url, hosts.signed_token(room_name, "ben"), single=single) as ben,
            peers.Publisher(anna), peers.Watcher(ben, "anna") as watcher,
        ):
            await frames_within(watcher, 10, "the first pictures")
            sid = anna.local_participant.sid
            await anna.simulate_scenario(SimulateScenarioKind.SIMULATE_FULL_RECONNECT)

            def returned() -> bool:
                seen = ben.remote_participants.get("anna")
                return seen is not None and seen.sid != sid

            await until(returned, 15, "anna's new session")
            await frames_within(watcher, 5, "pictures of the new session")
            await until(lambda: len(watcher.samples) >= 200, 6, "sound of the new session")
            check_tone(watcher.last_second(), 440, "ben")
            # And the subscriber.
            await ben.simulate_scenario(SimulateScenarioKind.SIMULATE_FULL_RECONNECT)
            await asyncio.sleep(1)
            await frames_within(watcher, 10, "pictures in ben's new session")


async def simulated_faults(url: str, bin_path: pathlib.Path):
    """Faults that a client asks for: a speaker, a migration, a lost node, a cut resume, a server that ends."""
    for single in (True, False):
        room_name = f"faults{single}"
        async with (
            peers.joined(url, hosts.signed_token(room_name, "anna"), single=single) as anna,
            peers.joined(url, hosts.signed_token(room_name, "ben"), single=single) as ben,
            peers.Publisher(anna, kinds=("video",)), peers.Watcher(ben, "anna") as watcher,
        ):
            await frames_within(watcher, 10, "the first pictures")
            speakers = collect(ben, "active_speakers_changed")
            await anna.simulate_scenario(SimulateScenarioKind.SIMULATE_SPEAKER)
            await until(lambda: any("anna" in [p.identity for p in e[1]] for e in speakers), 5, "the speaker")
            await until(lambda: speakers[-1][1] == [], 6, "the speaker's end")

            back = collect(anna, "reconnecting", "reconnected", "disconnected")
            gone = collect(ben, "participant_disconnected")
            await anna.simulate_scenario(SimulateScenarioKind.SIMULATE_MIGRATION)
            await until(lambda: [e[0] for e in back][-1:] == ["reconnected"], 15, "the migrated session")
            await frames_within(watcher, 5, "pictures after a migration")
            assert not gone, f"ben saw {gone}"

            for fault in ("NODE_FAILURE", "DISCONNECT_SIGNAL_ON_RESUME"):
                back.clear()
                sid = ben.remote_participants["anna"].sid
                await anna.simulate_scenario(SimulateScenarioKind.Value(f"SIMULATE_{fault}"))
                await until(lambda: [e[0] for e in back][-1:] == ["reconnected"], 20, f"the session after {fault}")
                await until(
                    lambda: "anna" in ben.remote_participants and ben.remote_participants["anna"].sid != sid, 15,
                    f"anna's new session after {fault}")
                await frames_within(watcher, 10, f"pictures after {fault}")

            back.clear()
            await anna.simulate_scenario(SimulateScenarioKind.SIMULATE_SERVER_LEAVE)
            await until(lambda: any(e[0] == "disconnected" for e in back), 10, "anna's leaving")
            await until(lambda: "anna" not in ben.remote_participants, 5, "anna's absence")


async def switched_to_tcp(url: str, bin_path: pathlib.Path):
    """Who asks for TCP gets nothing else in its next session: pictures flow on when UDP is blocked."""
    for single in (True, False):
        with hosts.sfu(bin_path, "--tcp-port", "0") as url:
            async with (
                peers.joined(url, hosts.signed_token("tcp", "anna"), single=single) as anna,
                peers.joined(url, hosts.signed_token("tcp", "ben"), single=single) as ben,
                peers.Publisher(anna, kinds=("video",)), peers.Watcher(ben, "anna") as watcher,
            ):
                await frames_within(watcher, 10, "the first pictures")
                for room, name in ((anna, "anna"), (ben, "ben")):
                    back = collect(room, "reconnected")
                    await room.simulate_scenario(SimulateScenarioKind.SIMULATE_FORCE_TCP)
                    await until(lambda: back, 20, f"{name}'s session over TCP")
                    await frames_within(watcher, 10, f"pictures after {name} has switched")
                with hosts.no_udp():
                    await frames_within(watcher, 5, "pictures without UDP", least=40)


TESTS = [signaling_is_cut, full_reconnects, simulated_faults, switched_to_tcp]
