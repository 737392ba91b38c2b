"""Debian's Chromium without a window, driven over the DevTools protocol, with the livekit-client JavaScript of the PyPI wheel."""
import asyncio
import contextlib
import importlib.resources
import json
import pathlib
import re
import shutil
import tempfile

import aiohttp
import numpy as np
from aiohttp import web

import checks

HERE = pathlib.Path(__file__).parent
FLAGS = (
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-dev-shm-usage", "--remote-debugging-port=0",
    "--autoplay-policy=no-user-gesture-required", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
)


def client_script() -> str:
    """The wheel's page carries LiveKit's JavaScript client in one module; two of its classes are made visible."""
    page = importlib.resources.files("livekit.rtc.resources") / "jupyter-html" / "index.html"
    text = page.read_text()
    begin = text.index('<script type="module" crossorigin>') + len('<script type="module" crossorigin>')
    script = text[begin : text.index("</script>", begin)]
    names = {}
    for name, mark in (("Room", r"prepareConnection\("), ("KeyProvider", r"onSetEncryptionKey\(")):
        place = re.search(mark, script).start()
        names[name] = re.findall(r"class ([\w$]+) extends [\w$]+\.EventEmitter", script[:place])[-1]
    # Before the page's own program, which finds no element to show itself in and gives up.
    place = script.index("##livekit-url-placeholder##")
    place = script.rindex("function ", 0, place)
    shown = "window.LiveKit={" + ",".join(f"{name}:{short}" for name, short in names.items()) + "};"
    return script[:place] + shown + script[place:]


class Page:
    """One page; `call` runs a function of page.js in it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse):
        self.socket = socket
        self.last = 0
        self.waiting: dict[int, asyncio.Future] = {}
        self.printed: list[str] = []
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        async for message in self.socket:
            answer = json.loads(message.data)
            if "id" in answer:
                if waiting := self.waiting.pop(answer["id"], None):
                    waiting.set_result(answer)
            elif answer["method"] == "Runtime.consoleAPICalled":
                self.printed.append(" ".join(str(item.get("value", item.get("description"))) for item in answer["params"]["args"]))
            elif answer["method"] == "Runtime.exceptionThrown":
                self.printed.append(answer["params"]["exceptionDetails"].get("exception", {}).get("description", "exception"))

    async def command(self, method: str, **parameters):
        self.last += 1
        self.waiting[self.last] = waiting = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": self.last, "method": method, "params": parameters})
        answer = await asyncio.wait_for(waiting, 20)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    async def evaluate(self, expression: str):
        result = await self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if details := result.get("exceptionDetails"):
            raise AssertionError(f"page: {details.get('exception', {}).get('description', details)}; {self.printed[-5:]}")
        return result["result"].get("value")

    async def call(self, function: str, *arguments):
        return await self.evaluate(f"palbe.{function}({', '.join(json.dumps(argument) for argument in arguments)})")

    async def until(self, function: str, *arguments, accept=bool, seconds: float = 10, what: str = ""):
        """Calls until the answer is accepted; that answer."""
        answer = None
        end = asyncio.get_running_loop().time() + seconds
        while not accept(answer := await self.call(function, *arguments)):
            assert asyncio.get_running_loop().time() < end, f"{what or function}: {answer} after {seconds} s; {self.printed[-5:]}"
            await asyncio.sleep(0.1)
        return answer

    async def sound(self, identity: str) -> np.ndarray:
        return np.array(await self.call("sound", identity), np.int16)


async def serve(request: web.Request) -> web.Response:
    name = request.path.lstrip("/")
    if name == "livekit.js":
        return web.Response(text=client_script(), content_type="text/javascript")
    if name in ("page.js", "worker.js"):
        return web.Response(text=(HERE / name).read_text(), content_type="text/javascript")
    return web.Response(
        text='<!doctype html><title>palbe</title><script type="module" src="livekit.js"></script>'
        '<script type="module" src="page.js"></script>', content_type="text/html")


@contextlib.asynccontextmanager
async def chromium(noise: int = 0):
    """A Chromium whose camera shows numbers.y4m and whose microphone hears tone.wav; yields a page."""
    program = shutil.which("chromium")
    assert program, "chromium is not installed; scripts/test-real-clients installs it"
    async with contextlib.AsyncExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        checks.write_sources(folder, noise)
        application = web.Application()
        application.router.add_get("/{name:.*}", serve)
        runner = web.AppRunner(application)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        # A page from the loopback interface may use the camera; media does not go there.
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        errors = stack.enter_context(open(folder / "errors", "wb"))
        process = await asyncio.create_subprocess_exec(
            program, *FLAGS, f"--user-data-dir={folder / 'profile'}",
            f"--use-file-for-fake-video-capture={folder / 'numbers.y4m'}",
            f"--use-file-for-fake-audio-capture={folder / 'tone.wav'}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=errors)
        stack.push_async_callback(end, process)
        port_file = folder / "profile" / "DevToolsActivePort"
        await checks.until(
            lambda: port_file.exists() and port_file.read_text().count("\n") >= 1, 20, "Chromium's start")
        port = port_file.read_text().split()[0]
        session = await stack.enter_async_context(aiohttp.ClientSession())
        async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
            target = next(page for page in await response.json() if page["type"] == "page")
        socket = await stack.enter_async_context(session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=1 << 26))
        page = Page(socket)
        stack.callback(page.reader.cancel)
        await page.command("Runtime.enable")
        await page.command("Page.enable")
        await page.command("Page.navigate", url=url)
        end_time = asyncio.get_running_loop().time() + 15
        while not await page.evaluate("!!(window.palbe && window.LiveKit)"):
            assert asyncio.get_running_loop().time() < end_time, f"the page did not load: {page.printed}"
            await asyncio.sleep(0.1)
        yield page


async def end(process: asyncio.subprocess.Process):
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), 5)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
