"""The network namespace and the processes of a run. Every process started here is ended here, by its id."""
import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import re
import subprocess
import time

ADDRESS, ADDRESS6 = "10.213.0.1", "fd00:213::1"
KEY, SECRET = "devkey", "0123456789abcdef0123456789abcdef"


def make_network():
    """Brings up a veth pair in this process's own network namespace; refuses to touch another one."""
    links = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout
    if any(not re.match(r"\d+: lo:", line) for line in links.splitlines()):
        raise SystemExit("real clients: not in a network namespace of its own; use scripts/test-real-clients")
    for command in (
        "ip link set lo up",
        "ip link add palbe0 type veth peer name palbe1",
        f"ip address add {ADDRESS}/24 dev palbe0",
        f"ip address add {ADDRESS6}/64 dev palbe0 nodad",
        "ip link set palbe0 up",
        "ip link set palbe1 up",
    ):
        subprocess.run(command.split(), check=True)


@contextlib.contextmanager
def no_udp(which: str = ""):
    """No datagram leaves any socket of the namespace over IPv4, or none such as "dport 7882" and "sport 7882" select."""
    # The rule of local addresses comes first; it has to stand behind one that drops.
    for command in (
        "ip rule add pref 20 lookup local",
        "ip rule del pref 0",
        f"ip rule add pref 10 ipproto udp {which} blackhole",
    ):
        subprocess.run(command.split(), check=True)
    try:
        yield
    finally:
        for command in ("ip rule add pref 0 lookup local", "ip rule del pref 10", "ip rule del pref 20"):
            subprocess.run(command.split(), check=True)


@contextlib.contextmanager
def sfu(
    bin_path: pathlib.Path, *options: str, address: str | None = ADDRESS, reached_at: str | None = None, udp_port: int = 0,
):
    """A palbe-sfu on the veth address, on another one, or with None where it listens by default; yields its WebSocket
    URL with the address it is reached at."""
    where = ["--host", address] if address else []
    process = subprocess.Popen(
        [bin_path / "palbe-sfu", "serve", *where, "--port", "0", "--udp-port", str(udp_port), "--key", f"{KEY}:{SECRET}",
         *options],
        stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        match = re.search(r"signaling \S*:(\d+)", line)
        if not match:
            raise SystemExit(f"real clients: palbe-sfu did not come up: {line!r}")
        host = reached_at or address or ADDRESS
        yield f"ws://{f'[{host}]' if ':' in host else host}:{match.group(1)}"
        if process.poll() is not None:
            raise AssertionError(f"palbe-sfu ended by itself with {process.returncode}")
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def token(bin_path: pathlib.Path, room: str, identity: str) -> str:
    """A token minted by palbe-call."""
    return subprocess.run(
        [bin_path / "palbe-call", "token", "--key", f"{KEY}:{SECRET}", "--room", room, "--identity", identity],
        check=True, capture_output=True, text=True).stdout.strip()


def signed_token(room: str, identity: str, **claims) -> str:
    """A token of our own making: `name`, `metadata`, `attributes`, and grants such as canPublish=False."""
    outside = {key: claims.pop(key) for key in ("name", "metadata", "attributes") if key in claims}
    video = {"roomJoin": True, "room": room, **claims}
    body = {"iss": KEY, "sub": identity, "exp": int(time.time()) + 3_600, "video": video, **outside}

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, body)]
    signature = hmac.digest(SECRET.encode(), ".".join(parts).encode(), hashlib.sha256)
    return ".".join([*parts, encoded(signature)])


class Proxy:
    """A TCP relay in front of the SFU's signaling, whose connections can be cut without a word to either end."""

    def __init__(self, url: str):
        self.host, port = url.removeprefix("ws://").split(":")
        self.port = int(port)
        self.healed = asyncio.Event()
        self.healed.set()
        self.writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.relay, ADDRESS, 0)
        self.url = f"ws://{ADDRESS}:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.cut()

    def cut(self):
        """Resets every connection; new ones wait until `healed` is set."""
        self.healed.clear()
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        await self.healed.wait()
        server_reader, server_writer = await asyncio.open_connection(self.host, self.port)
        self.writers |= {writer, server_writer}
        await asyncio.gather(self.copy(reader, server_writer), self.copy(server_reader, writer))

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()
        self.writers.discard(writer)


@contextlib.contextmanager
def palbe_call(bin_path: pathlib.Path, *arguments: str, environment: dict[str, str] | None = None, output=subprocess.DEVNULL):
    """A palbe-call join that runs until the block ends; what it prints goes to the file `output`."""
    process = subprocess.Popen(
        [bin_path / "palbe-call", "join", *arguments], stdout=output, env={**os.environ, **(environment or {})})
    try:
        yield process
    finally:
        process.send_signal(2)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("palbe-call did not leave within 10 s of SIGINT") from None
    if process.returncode != 0:
        raise AssertionError(f"palbe-call join ended with {process.returncode}")


def children() -> list[int]:
    """Ids of this process's children that still run."""
    me = os.getpid()
    path = pathlib.Path(f"/proc/{me}/task/{me}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def deadline(seconds: float) -> float:
    return time.monotonic() + seconds
