"""Checks a running palbe-server against its own OpenAPI document with schemathesis: run.py --server PATH [--examples N].

Signs in, enrols a device and founds a group, so that half of the requests are about something that is there. Exits 1 when an
answer is a 5xx (503 aside, which the document has), or not what the document says.
"""
import argparse
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance,negative_data_rejection,ignored_auth")
# These would end what the others need.
ENDINGS = ("signOut", "changePassword", "revokeDevice", "endSession")


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Server:
    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "serve", "--dev", "--port", "0", "--data", folder], stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+", self.process.stdout.readline()).group()

    def ask(self, method, path, body=None, headers=None):
        request = urllib.request.Request(
            self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", **(headers or {})})
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"{}")

    def end(self):
        self.process.terminate()
        return self.process.wait(30)


def populate(server):
    """Headers that authenticate, and ids of things that are there."""
    signed = server.ask("POST", "/v1/auth/sign-in", {"email": "anna@example.org", "password": "a long enough one 7"})
    headers = {"Authorization": "Bearer " + signed["access_token"], "Idempotency-Key": "populate"}
    device = server.ask(
        "POST", "/v1/devices", {"signature_key": text(os.urandom(32)), "platform": "linux", "key_packages": []}, headers)
    headers["Palbe-Device"] = device["device_token"]
    mls = os.urandom(32)
    # An MLSMessage with a GroupInfo of epoch 0: version, wire format, version, suite, group id, epoch, and the rest.
    info = bytes.fromhex("0001000400010001") + b"\x20" + mls + bytes(8) + b"rest"
    group = server.ask(
        "POST", "/v1/groups", {"rfc_group_id": text(mls), "kind": "group", "group_info": text(info)}, headers)
    del headers["Idempotency-Key"]
    return headers, {"group": group["group_id"], "user": signed["user_id"], "device": device["device_id"]}


HOOKS = '''
import json, os, random, schemathesis
known = json.loads(os.environ["PALBE_KNOWN"])

@schemathesis.hook
def map_path_parameters(context, path_parameters):
    for name in path_parameters or {}:
        if name in known and random.random() < 0.5:
            path_parameters[name] = known[name]
    return path_parameters
'''

# Its own list of refusals lacks 411, 412 and 413: a body that is too long is refused as that, whatever else is wrong with it.
CONFIGURATION = '''
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 408, 409, 411, 412, 413, 415, 422, 428, 429, 431, "5xx"]
'''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--examples", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(arguments.server, folder + "/data")
        try:
            headers, known = populate(server)
            hooks = pathlib.Path(folder) / "palbe_hooks.py"
            hooks.write_text(HOOKS)
            (pathlib.Path(folder) / "schemathesis.toml").write_text(CONFIGURATION)
            document = pathlib.Path(folder) / "openapi.json"
            document.write_bytes(urllib.request.urlopen(server.url + "/v1/openapi.json").read())
            command = [
                str(pathlib.Path(sys.executable).parent / "schemathesis"), "run", str(document), "--url", server.url,
                "--checks", CHECKS, "--phases", "coverage,fuzzing", "-n", str(arguments.examples), "--seed", "1",
                "--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off",
                "--request-timeout", "40", "--continue-on-failure"]
            for name in ENDINGS:
                command += ["--exclude-operation-id", name]
            for name, value in headers.items():
                command += ["-H", f"{name}:{value}"]
            code = subprocess.run(command, cwd=folder, env={
                **os.environ, "SCHEMATHESIS_HOOKS": "palbe_hooks", "PYTHONPATH": folder,
                "PALBE_KNOWN": json.dumps(known)}).returncode
        finally:
            end = server.end()
        if end != 0:
            print(f"palbe-server ended with {end}", file=sys.stderr)
        sys.exit(1 if code or end else 0)


main()
