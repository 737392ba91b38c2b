"""Networks that let no UDP through, and IPv6."""
import pathlib

import calls
import hosts

UDP_PORT = 47_882


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


async def over_ipv6(url: str, bin_path: pathlib.Path):
    """On a server with an IPv6 address alone livekit clients, and one and palbe-call, see and hear each other."""
    with hosts.sfu(bin_path, address=hosts.ADDRESS6) as url:
        await calls.two_livekit_clients(url, bin_path)
        await calls.exchange(url, bin_path, ["--no-e2ee"])


async def both_families(url: str, bin_path: pathlib.Path):
    """A server listens on both families by default: who joins over IPv6 and who joins over IPv4 see each other."""
    with hosts.sfu(bin_path, "--tcp-port", "0", address=None, reached_at=hosts.ADDRESS6) as url:
        await calls.two_livekit_clients(url, bin_path, watcher_url=url.replace(f"[{hosts.ADDRESS6}]", hosts.ADDRESS))


TESTS = [over_tcp, palbe_call_over_tcp, tcp_alone, over_ipv6, both_families]
