"""Networks that let no UDP through, and IPv6."""
import pathlib
import subprocess

import calls
import hosts
from checks import until

UDP_PORT, TCP_PORT = 47_882, 47_881


async def over_tcp(url: str, bin_path: pathlib.Path):
    """Without UDP livekit clients, with one connection and two, see and hear each other over ICE-TCP."""
    with hosts.sfu(bin_path, "--tcp-port", "0") as url, hosts.no_udp():
        await calls.two_livekit_clients(url, bin_path, (True, False))
        await calls.two_livekit_clients(url, bin_path, (False, True))


async def palbe_call_over_tcp(url: str, bin_path: pathlib.Path):
    """Where the server's UDP port is blocked a livekit client and palbe-call see and hear each other over ICE-TCP."""
    with (
        hosts.sfu(bin_path, "--workers", "1", "--tcp-port", "0", udp_port=UDP_PORT) as url,
        hosts.no_udp(f"dport {UDP_PORT}"),
    ):
        await calls.exchange(url, bin_path, ["--no-e2ee"])


async def tcp_alone(url: str, bin_path: pathlib.Path):
    """The same where the server offers TCP alone (rtc.force_tcp)."""
    with hosts.sfu(bin_path, "--force-tcp") as url:
        await calls.exchange(url, bin_path, ["--no-e2ee"])


async def cut_tcp(url: str, bin_path: pathlib.Path):
    """A connection for media that breaks is made again: palbe-call goes on both ways within a second, livekit later."""
    async def cut(anna, watcher):
        for owner, seconds in (("palbe-call", 3), ("python", 20)):
            seen = len(watcher.numbers)
            kill_streams(owner)
            await until(lambda: len(watcher.numbers) >= seen + 30, seconds, f"30 frames after the cut of {owner}")

    with hosts.sfu(bin_path, "--force-tcp", "--workers", "1", "--tcp-port", str(TCP_PORT)) as url:
        await calls.exchange(url, bin_path, ["--no-e2ee"], midway=cut, loops=4)


def kill_streams(owner: str):
    """Ends the connection of a program to the server's TCP port, as a router that forgets it would."""
    listing = ["ss", "--tcp", "--numeric", "--processes", "--no-header", "dport", "=", str(TCP_PORT)]
    lines = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()
    ports = [line.split()[3].rsplit(":", 1)[1] for line in lines if f'"{owner}"' in line]
    assert len(ports) == 1, lines
    subprocess.run(["ss", "--kill", "sport", "=", ports[0]], check=True, capture_output=True)


async def over_ipv6(url: str, bin_path: pathlib.Path):
    """On a server with an IPv6 address alone livekit clients, and one and palbe-call, see and hear each other."""
    with hosts.sfu(bin_path, address=hosts.ADDRESS6) as url:
        await calls.two_livekit_clients(url, bin_path)
        await calls.exchange(url, bin_path, ["--no-e2ee"])


async def both_families(url: str, bin_path: pathlib.Path):
    """A server listens on both families by default: who joins over IPv6 and who joins over IPv4 see each other."""
    with hosts.sfu(bin_path, "--tcp-port", "0", address=None, reached_at=hosts.ADDRESS6) as url:
        await calls.two_livekit_clients(url, bin_path, watcher_url=url.replace(f"[{hosts.ADDRESS6}]", hosts.ADDRESS))


TESTS = [over_tcp, palbe_call_over_tcp, tcp_alone, cut_tcp, over_ipv6, both_families]
