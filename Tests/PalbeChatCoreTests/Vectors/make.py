#!/usr/bin/env python3
"""Writes the vectors beside it: the formats of docs/wire-format.md a second time, from their description alone.

Needs PyPI `cryptography`. Run: python3 make.py
"""
import hashlib
import json
import pathlib
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HERE = pathlib.Path(__file__).parent


# Protobuf: fields are (number, value); a number is a varint, bytes and text are length-delimited, a list is a message.
def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*fields):
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def padded_length(count, grain):
    sixteenth = max(grain, -(-count // 16))
    while grain < sixteenth:
        grain *= 2
    return max(1, -(-count // grain)) * grain


def pad(data):
    return (data + b"\x80").ljust(padded_length(len(data) + 1, 256), b"\0")


def uuid7(number):
    return struct.pack(">Q", 0x018f_0000_0000 << 16 | 0x7000 | number) + struct.pack(">Q", 1 << 63 | number)


def text_id(prefix, data):
    digits = data.hex()
    return prefix + "_" + "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


MESSAGE, TARGET, BLOB, ADA, BEN, PHONE = (uuid7(n) for n in (1, 2, 3, 10, 11, 20))
SENT = 1_764_500_000_123


def envelope(content, *, head=((1, 1), (2, MESSAGE), (3, SENT)), more=()):
    return message(*head, *more, *content)


def envelopes():
    base = {"version": "1", "id": text_id("msg", MESSAGE), "sent_at_ms": str(SENT)}
    good, bad = [], []

    def take(name, data, fields, canonical=True):
        good.append({"name": name, "plaintext": pad(data).hex(), "canonical": canonical, "fields": {**base, **fields}})

    def refuse(name, plaintext, error):
        bad.append({"name": name, "plaintext": plaintext.hex(), "error": error})

    def mention(start, length, user):
        zero = lambda number, value: ((number, value),) if value else ()
        return (2, message(*zero(1, start), *zero(2, length), (3, user)))

    reply = message((1, TARGET), (2, BEN), (3, "image"), (4, "a cat"))
    said = text_id("usr", BEN)
    take("text", envelope([(16, message((1, "hello")))]), {"content": "text", "text": "hello"})
    take("empty text", envelope([(16, b"")]), {"content": "text", "text": ""})
    take("text of every width", envelope([(16, message((1, "aé€😀 e\u0301 👩‍👩‍👧 🇨🇭")))]),
         {"content": "text", "text": "aé€😀 e\u0301 👩‍👩‍👧 🇨🇭"})
    take("mentions behind an emoji of two units",
         envelope([(16, message((1, "😀 @ada @ben"), mention(3, 4, ADA), mention(8, 4, BEN)))]),
         {"content": "text", "text": "😀 @ada @ben",
          "mentions": f"3+4 {text_id('usr', ADA)}, 8+4 {said}"})
    take("a mention of a whole pair", envelope([(16, message((1, "😀"), mention(0, 2, ADA)))]),
         {"content": "text", "text": "😀", "mentions": f"0+2 {text_id('usr', ADA)}"})
    take("mentions that cannot stand are dropped",
         envelope([(16, message(
             (1, "😀 @ada"), mention(1, 3, BEN), mention(0, 1, BEN), mention(3, 0, BEN), mention(-1, 2, BEN),
             mention(3, -1, BEN), mention(3, 5, BEN), mention(7, 1, BEN), mention((1 << 63) - 1, 1, BEN),
             mention(3, (1 << 63) - 1, BEN), mention(3, 4, ADA), mention(6, 1, BEN), mention(3, 4, BEN)))]),
         {"content": "text", "text": "😀 @ada", "mentions": f"3+4 {text_id('usr', ADA)}"}, canonical=False)
    take("reply", envelope([(16, message((1, "yes"), (3, reply)))]),
         {"content": "text", "text": "yes", "reply": text_id("msg", TARGET), "quote": f"{said} image: a cat"})
    take("reply without a quoted text", envelope([(16, message((1, "yes"), (3, message((1, TARGET), (2, BEN), (3, "hologram")))))]),
         {"content": "text", "text": "yes", "reply": text_id("msg", TARGET), "quote": f"{said} hologram"})
    take("disappears after reading", envelope([(16, message((1, "psst")))], more=[(4, message((1, 30), (2, 2)))]),
         {"content": "text", "text": "psst", "expiry": "30 read"})
    take("a start of a newer version is the sending",
         envelope([(16, message((1, "psst")))], more=[(4, message((1, 30), (2, 9)))]),
         {"content": "text", "text": "psst", "expiry": "30 send"}, canonical=False)

    key = bytes(range(32))
    cipher_hash = hashlib.sha256(b"ciphertext").digest()
    picture = message(
        (1, BLOB), (2, key), (3, cipher_hash), (4, 8 + 12_288 + 16), (5, 10_000), (6, 1), (7, "cat.jpg"),
        (8, "image/jpeg"), (9, b"\xff\xd8thumb"), (12, 640), (13, 480), (14, reply), (15, "look"))
    described = {
        "blob": text_id("blb", BLOB), "key": key.hex(), "cipher_sha256": cipher_hash.hex(), "cipher_bytes": "12312",
        "plain_bytes": "10000"}
    take("image", envelope([(17, picture)]), {
        "content": "attachment", **described, "kind": "image", "filename": "cat.jpg", "mime_type": "image/jpeg",
        "thumbnail": b"\xff\xd8thumb".hex(), "width": "640", "height": "480", "reply": text_id("msg", TARGET),
        "quote": f"{said} image: a cat", "caption": "look"})
    voice = message(
        (1, BLOB), (2, key), (3, cipher_hash), (4, 12_312), (5, 10_000), (6, 4), (7, "voice.m4a"), (8, "audio/m4a"),
        (10, bytes([0, 128, 255])), (11, 1_500))
    take("voice", envelope([(17, voice)]), {
        "content": "attachment", **described, "kind": "voice", "filename": "voice.m4a", "mime_type": "audio/m4a",
        "waveform": "0080ff", "duration_ms": "1500"})
    newer = message(
        (1, BLOB), (2, key), (3, cipher_hash), (4, 12_312), (5, 10_000), (6, 77), (7, "model.usdz"),
        (8, "model/vnd.usdz+zip"))
    take("a kind of a newer version is a file", envelope([(17, newer)]), {
        "content": "attachment", **described, "kind": "file", "filename": "model.usdz",
        "mime_type": "model/vnd.usdz+zip"}, canonical=False)

    take("reaction", envelope([(18, message((1, TARGET), (2, "👍🏽")))]),
         {"content": "reaction", "target": text_id("msg", TARGET), "emoji": "👍🏽"})
    take("reaction taken off", envelope([(18, message((1, TARGET), (2, "❤️"), (3, 1)))]),
         {"content": "reaction", "target": text_id("msg", TARGET), "emoji": "❤️", "removed": "true"})
    take("edit", envelope([(19, message((1, TARGET), (2, "hallo @ada"), (3, message((1, 6), (2, 4), (3, ADA)))))]),
         {"content": "edit", "target": text_id("msg", TARGET), "text": "hallo @ada",
          "mentions": f"6+4 {text_id('usr', ADA)}"})
    take("deletion", envelope([(20, message((1, TARGET)))]), {"content": "delete", "target": text_id("msg", TARGET)})
    take("renamed", envelope([(21, message((1, message((1, "climbers")))))]),
         {"content": "control", "control": "renamed", "name": "climbers"})
    take("name taken away", envelope([(21, message((1, b"")))]), {"content": "control", "control": "renamed", "name": ""})
    take("timer", envelope([(21, message((2, message((1, message((1, 86_400), (2, 1)))))))]),
         {"content": "control", "control": "timer", "timer": "86400 send"})
    take("timer off", envelope([(21, message((2, b"")))]), {"content": "control", "control": "timer"})
    take("timer acknowledged", envelope([(21, message((3, message((1, TARGET)))))]),
         {"content": "control", "control": "timer_acknowledged", "target": text_id("msg", TARGET)})
    take("leaving", envelope([(21, message((4, b"")))]), {"content": "control", "control": "leaving"})
    profile = message(
        (1, "climbers"), (2, message((1, 4), (2, 17), (3, TARGET))), (3, message((1, 60), (2, 2))),
        (4, message((1, 2), (2, 9))))
    take("profile", envelope([(21, message((5, profile)))]), {
        "content": "control", "control": "profile", "name": "climbers",
        "name_version": f"4/17 {text_id('msg', TARGET)}", "timer": "60 read", "timer_version": "2/9"})
    take("receipt", envelope([(22, message((1, 2), (2, TARGET)))]),
         {"content": "receipt", "receipt": "read", "target": text_id("msg", TARGET)})
    take("custom", envelope([(23, message((1, "shop.gift"), (2, b"\x01\x02")))], more=[(5, "Ada sent a gift")]),
         {"content": "custom", "type": "shop.gift", "payload": "0102", "fallback": "Ada sent a gift"})

    take("unknown content", envelope([(40, b"whatever")], more=[(5, "Ada started a poll")]),
         {"content": "unknown 40", "fallback": "Ada started a poll"}, canonical=False)
    take("unknown content that is a number", envelope([(63, 7)]), {"content": "unknown 63"}, canonical=False)
    take("unknown control", envelope([(21, message((9, b"x")))]), {"content": "unknown 21"}, canonical=False)
    take("unknown receipt", envelope([(22, message((1, 3), (2, TARGET)))]), {"content": "unknown 22"}, canonical=False)
    take("fields that are not known are passed over",
         envelope([(16, message((1, "hello"), (99, b"x"))), (64, 5), (1000, b"y")], more=[(15, b"z")]),
         {"content": "text", "text": "hello"}, canonical=False)
    take("fields in another order", message((16, message((1, "hello"))), (3, SENT), (2, MESSAGE), (1, 1)),
         {"content": "text", "text": "hello"}, canonical=False)

    text = (16, message((1, "hello")))
    refuse("nothing", b"", "padding")
    refuse("zeros", bytes(256), "padding")
    refuse("no padding", envelope([text]) + b"\x01", "padding")
    refuse("only padding", pad(b""), "version 0")
    refuse("version 2", pad(envelope([text], head=((1, 2), (2, MESSAGE), (3, SENT)))), "version 2")
    refuse("no id", pad(envelope([text], head=((1, 1), (3, SENT)))), "missing id")
    refuse("an id of 15 bytes", pad(envelope([text], head=((1, 1), (2, MESSAGE[:15]), (3, SENT)))), "invalid id")
    refuse("sent before 1970", pad(envelope([text], head=((1, 1), (2, MESSAGE), (3, -1)))), "invalid sent_at_ms")
    refuse("sent when no id can tell", pad(envelope([text], head=((1, 1), (2, MESSAGE), (3, 1 << 48)))),
           "invalid sent_at_ms")
    refuse("no content", pad(envelope([])), "missing content")
    refuse("two contents", pad(envelope([text, (20, message((1, TARGET)))])), "several contents")
    refuse("a content and an unknown one", pad(envelope([text, (40, b"")])), "several contents")
    refuse("two controls", pad(envelope([(21, message((1, b""), (4, b"")))])), "several contents")
    refuse("no control", pad(envelope([(21, b"")])), "missing control")
    refuse("cut off", pad(envelope([text])[:-1]), "malformed")
    refuse("a text that is no UTF-8", pad(envelope([(16, message((1, b"\xff")))])), "malformed")
    refuse("a surrogate in UTF-8", pad(envelope([(16, message((1, b"\xed\xa0\x80")))])), "malformed")
    refuse("a text that is a number", pad(envelope([(16, 7)])), "malformed")
    refuse("disappears at once", pad(envelope([text], more=[(4, b"")])), "invalid expiry")
    refuse("a reaction of two emoji", pad(envelope([(18, message((1, TARGET), (2, "👍👍")))])), "invalid emoji")
    refuse("a reaction of nothing", pad(envelope([(18, message((1, TARGET)))])), "invalid emoji")
    refuse("a reaction of white space", pad(envelope([(18, message((1, TARGET), (2, " ")))])), "invalid emoji")
    refuse("a reaction of a control", pad(envelope([(18, message((1, TARGET), (2, "\x07")))])), "invalid emoji")
    refuse("a reaction of 36 bytes", pad(envelope([(18, message((1, TARGET), (2, "e" + "\u0301" * 18)))])),
           "invalid emoji")
    refuse("a reaction to nothing", pad(envelope([(18, message((2, "👍")))])), "missing target")
    refuse("a reply without a kind", pad(envelope([(16, message((1, "a"), (3, message((1, TARGET), (2, BEN)))))])),
           "missing quote_kind")
    refuse("a path for a name", pad(envelope([(17, picture.replace(b"cat.jpg", b"../a.sh"))])), "invalid filename")
    refuse("a media type of two lines", pad(envelope([(17, picture.replace(b"image/jpeg", b"image/\njpg"))])),
           "invalid mime_type")
    refuse("a key of 31 bytes", pad(envelope([(17, picture.replace(b"\x12\x20" + key, b"\x12\x1f" + key[:31]))])),
           "invalid key")
    refuse("no key", pad(envelope([(17, picture.replace(b"\x12\x20" + key, b""))])), "missing key")
    refuse("sizes that do not belong together", pad(envelope([(17, message(
        (1, BLOB), (2, key), (3, cipher_hash), (4, 12_313), (5, 10_000), (6, 1)))])), "invalid cipher_bytes")
    refuse("custom without a type", pad(envelope([(23, message((2, b"x")))])), "missing type")
    return {"messages": good, "refused": bad}


def padding():
    lengths = [0, 1, 255, 256, 257, 4_095, 4_096, 4_097, 8_192, 8_193, 65_535, 65_537, 100_000, 131_072]
    files = [0, 1, 4_096, 4_097, 65_536, 65_537, 1_000_000, 1 << 20, (1 << 20) + 1, 10_000_000, 1 << 31, (1 << 40) - 1]
    return {"messages": [[n, padded_length(n, 256)] for n in lengths],
            "attachments": [[n, padded_length(n, 4_096)] for n in files]}


class Random:
    """SplitMix64, as the project's seeded source."""

    def __init__(self, seed):
        self.state = seed

    def bytes(self, count):
        out = b""
        while len(out) < count:
            self.state = (self.state + 0x9E3779B97F4A7C15) % (1 << 64)
            z = self.state
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
            z = (z ^ z >> 27) * 0x94D049BB133111EB % (1 << 64)
            out += struct.pack("<Q", z ^ z >> 31)
        return out[:count]


def attachments():
    vectors = []
    for seed, count in enumerate([0, 5, 4_096, 10_000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_000]):
        random = Random(seed)
        key, prefix = random.bytes(32), random.bytes(8)
        file = bytes((index * 7 + seed) % 251 for index in range(count))
        padded = file.ljust(padded_length(count, 4_096), b"\0")
        segments = [padded[at:at + (1 << 20)] for at in range(0, len(padded), 1 << 20)]
        ciphertext = prefix
        for index, segment in enumerate(segments):
            tied = b"pbatt1" + BLOB + struct.pack(">IBI", index, index + 1 == len(segments), len(segments))
            ciphertext += AESGCM(key).encrypt(prefix + struct.pack(">I", index), segment, tied)
        vectors.append({
            "seed": seed, "blob": BLOB.hex(), "plain_bytes": count, "plain_sha256": hashlib.sha256(file).hexdigest(),
            "key": key.hex(), "prefix": prefix.hex(), "segments": len(segments), "cipher_bytes": len(ciphertext),
            "cipher_sha256": hashlib.sha256(ciphertext).hexdigest(), "ciphertext": ciphertext.hex() if count == 5 else None})
    return vectors


def profiles():
    secret, group = bytes(range(100, 132)), bytes(range(32))
    timer = message((1, 86_400), (2, 2))
    version = message((1, 4), (2, 17), (3, TARGET))
    contents = [
        ("empty", 0, b"", {"name_version": "0/0", "timer_version": "0/0"}),
        ("a name", 3, message((1, "climbers")), {"name": "climbers", "name_version": "0/0", "timer_version": "0/0"}),
        ("all of it", 1 << 40, message((1, "Ünï 👩‍👩‍👧"), (2, version), (3, timer), (4, message((1, 2), (2, 9)))),
         {"name": "Ünï 👩‍👩‍👧", "name_version": f"4/17 {text_id('msg', TARGET)}", "timer": "86400 read",
          "timer_version": "2/9"}),
        ("the longest name", 9, message((1, "n" * 256)),
         {"name": "n" * 256, "name_version": "0/0", "timer_version": "0/0"}),
    ]
    vectors = []
    for seed, (name, epoch, plain, fields) in enumerate(contents):
        nonce = Random(seed).bytes(12)
        tied = b"pbprof1" + struct.pack(">Q", epoch) + group
        sealed = b"\x01" + nonce + AESGCM(secret).encrypt(nonce, pad(plain), tied)
        vectors.append({"name": name, "seed": seed, "secret": secret.hex(), "group": group.hex(), "epoch": epoch,
                        "sealed": sealed.hex(), "fields": fields})
    return vectors


def safety_numbers():
    def half(user, material):
        digest = hashlib.sha512(b"\0\1" + material + user.encode()).digest()
        for _ in range(5_199):
            digest = hashlib.sha512(digest + material).digest()
        return "".join(f"{int.from_bytes(digest[at:at + 5], 'big') % 100_000:05}" for at in range(0, 30, 5))

    def material(devices):
        return b"".join(sorted({key + device for device, key in devices}))

    def party(devices):
        return [{"device": text_id("mdv", device), "key": key.hex()} for device, key in devices]

    def device(number, length=32):
        return uuid7(number), hashlib.shake_128(bytes([number])).digest(length)

    ada, ben = text_id("usr", ADA), text_id("usr", BEN)
    pairs = [
        ([device(20)], [device(30)]),
        ([device(20), device(21), device(22)], [device(30)]),
        ([device(22), device(20), device(21), device(20)], [device(30)]),
        ([device(20, 65)], [device(30, 57), device(31, 32)]),
        ([], [device(30)]),
    ]
    vectors = []
    for local, remote in pairs:
        own, other = material(local), material(remote)
        hashes = hashlib.sha256(own).digest(), hashlib.sha256(other).digest()
        vectors.append({
            "local": ada, "local_devices": party(local), "remote": ben, "remote_devices": party(remote),
            "local_material": own.hex(), "local_hash": hashes[0].hex(), "remote_hash": hashes[1].hex(),
            "number": "".join(sorted([half(ada, own), half(ben, other)])),
            "code": (b"\x01\x02\0\x01" + b"\x02\x20" + hashes[0] + b"\x03\x20" + hashes[1]).hex()})
    return vectors


def write(name, value):
    (HERE / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write("envelopes.json", envelopes())
    write("padding.json", padding())
    write("attachments.json", attachments())
    write("profiles.json", profiles())
    write("safety-numbers.json", safety_numbers())
