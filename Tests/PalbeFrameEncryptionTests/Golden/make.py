#!/usr/bin/env python3
"""Writes call-keys.json: the frame format computed a second time, from its description alone.

Needs PyPI `cryptography`. Run: python3 make.py > call-keys.json
"""
import hashlib
import hmac
import json
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def extract(material):
    return hmac.new(bytes(64), material, hashlib.sha512).digest()


def expand(secret, info, length):
    output, block, index = b"", b"", 1
    while len(output) < length:
        block = hmac.new(secret, block + info + bytes([index]), hashlib.sha512).digest()
        output += block
        index += 1
    return output[:length]


def named(text):
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def compact(value):
    if value < 8:
        return value, b""
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return 8 | len(data) - 1, data


def header(kid, counter):
    k, kid_bytes = compact(kid)
    c, counter_bytes = compact(counter)
    return bytes([k << 4 | c]) + kid_bytes + counter_bytes


def seal(key, room, identity, context, counter, source, clear, body):
    secret = extract(key)
    key_id = int.from_bytes(expand(secret, b"palbe kid v1", 3), "big")
    user, _, device = identity.partition("#")
    base = expand(secret, b"palbe sframe v1" + named(room) + named(user) + named(device), 32)
    kid = context << 24 | key_id
    frame_secret = extract(base)
    suffix = struct.pack(">QH", kid, 5)
    frame_key = expand(frame_secret, b"SFrame 1.0 Secret key " + suffix, 32)
    salt = expand(frame_secret, b"SFrame 1.0 Secret salt " + suffix, 12)
    nonce = bytes(a ^ b for a, b in zip(salt, bytes(4) + struct.pack(">Q", counter)))
    head = header(kid, counter)
    sealed = AESGCM(frame_key).encrypt(nonce, body, head + bytes([source]) + clear)
    return {
        "key": key.hex(), "room": room, "identity": identity, "context": context, "counter": counter,
        "source": source, "key_identifier": key_id, "base_key": base.hex(), "kid": kid,
        "frame_key": frame_key.hex(), "salt": salt.hex(), "frame": (clear + body).hex(),
        "clear": len(clear), "sealed": (clear + head + sealed).hex(),
    }


def main():
    key = bytes(range(32))
    other = hashlib.sha256(b"another call key").digest()
    vp8_key = bytes.fromhex("10020 0 9d012a8002e001".replace(" ", ""))
    vp8_delta = bytes.fromhex("310400")
    text = bytes(range(64, 164))
    cases = [
        (key, "room-1", "ada#phone", 0x0123456789, 0, 1, vp8_key, text),
        (key, "room-1", "ada#phone", 0x0123456789, 1, 1, vp8_delta, text),
        (key, "room-1", "ada#phone", 0x0123456789, 8, 1, vp8_delta, b""),
        (key, "room-1", "ada#phone", 0xFFFFFFFFFF, 255, 2, b"\x78", text[:60]),
        (key, "room-1", "ada#phone", 0xFFFFFFFFFF, 256, 2, b"\x78", b""),
        (key, "room-1", "ada#phone#2", 0x0123456789, 65536, 3, vp8_delta, text),
        (key, "room-1", "ada", 0x0123456789, 0, 4, b"\x78", text),
        (key, "room-2", "ada", 0x0123456789, 0, 4, b"\x78", text),
        (other, "räume/☂", "grace#läptop", 1, 0xFFFFFFFF, 255, b"", text),
        (other, "räume/☂", "grace#läptop", 0, 7, 255, b"", b""),
        (other, "r", "#d", 0x8000000000, 16777216, 1, vp8_delta[:2], b""),
    ]
    print(json.dumps([seal(*case) for case in cases], indent=1))


main()
