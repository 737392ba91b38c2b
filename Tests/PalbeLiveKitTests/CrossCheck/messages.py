#!/usr/bin/env python3
"""LiveKit's messages as PyPI livekit-protocol (1.1.29) writes and reads them.

messages.py golden FOLDER   writes the golden files of PalbeLiveKitTests: messages.txt, twirp.txt and enums.txt
messages.py check           reads lines "name, hex, JSON, Twirp JSON" (tabs between) from stdin: all three must be the
                            same message; prints each that is not and exits 1
"""
import json
import pathlib
import sys

from google.protobuf import descriptor_pool, json_format, message_factory
from livekit.protocol import metrics, models, room, rtc, webhook  # noqa: F401  (they fill the pool)

POOL = descriptor_pool.Default()
# Parts of LiveKit that the server does not have; they pass as bytes, and JSON does not carry them.
OPAQUE = {"livekit.RoomEgress", "livekit.RoomAgentDispatch", "livekit.EgressInfo", "livekit.IngressInfo", "livekit.Job"}
SKIPPED = OPAQUE | {
    "livekit.Pagination", "livekit.TokenPagination", "livekit.ListUpdate", "livekit.Encryption", "livekit.RTPDrift",
    "livekit.RTPStats", "livekit.RTCPSenderReportState", "livekit.RTPForwarderState", "livekit.RTPMungerState",
    "livekit.DependencyDescriptorForwarderState", "livekit.VP8MungerState", "livekit.DataStream",
    "livekit.FilterParams", "livekit.WebhookConfig", "livekit.RoomAgent", "livekit.MetricsRecordingHeader",
}
SKIPPED_ENUMS = {"livekit.AudioCodec", "livekit.VideoCodec", "livekit.ImageCodec", "livekit.MetricLabel"}
TWIRP = [
    "Room", "ListRoomsResponse", "ParticipantInfo", "ListParticipantsResponse", "TrackInfo", "MuteRoomTrackResponse",
    "SendDataResponse", "PerformRpcResponse", "RoomConfiguration", "DataPacket",
]
NUMBERS = {
    "int32": [-1, 7, -(2**31), 2**31 - 1], "int64": [-1, 2**53 + 1, -(2**63), 2**63 - 1],
    "uint32": [1, 300, 2**32 - 1], "uint64": [1, 2**53 + 1, 2**64 - 1],
    "float": [0.5, -1.25, 0.1, 1e20, 1e38, 1e-7], "bool": [True],
}
KINDS = {2: "float", 3: "int64", 4: "uint64", 5: "int32", 8: "bool", 9: "string", 12: "bytes", 13: "uint32"}


def create(descriptor):
    return message_factory.GetMessageClass(descriptor)()


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_opaque(field):
    return field.message_type is not None and field.message_type.full_name in OPAQUE


def scalar(field, turn):
    """Another value for another turn, so that no two fields of a message are mixed up."""
    turn += field.number
    if field.enum_type is not None:
        values = [value.number for value in field.enum_type.values] + [999]
        return values[turn % len(values)]
    kind = KINDS[field.type]
    if kind == "string":
        return [f"{field.name}-{turn}", f"{field.name} \"é\\🎈\n\u0001\u2028"][turn % 2]
    if kind == "bytes":
        return [bytes([0, 255, turn % 256]), bytes([251, 255]), b"\xfb"][turn % 3]
    return NUMBERS[kind][turn % len(NUMBERS[kind])]


def fill(message, turn, depth=0, chosen=None):
    """Sets every field; of a oneof the case `chosen`, else one by turn."""
    descriptor = message.DESCRIPTOR
    if descriptor.full_name == "google.protobuf.Timestamp":
        message.seconds = [1767323045, 951782400, -1, 0, 253402300799][turn % 5]
        message.nanos = [0, 500000000, 1000, 1, 999999999][turn % 5]
        return message
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and len(oneof.fields) > 1:
            wanted = chosen if chosen in oneof.fields else oneof.fields[turn % len(oneof.fields)]
            if field is not wanted and field != wanted:
                continue
        if is_opaque(field):
            continue
        if is_map(field):
            key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            # One number, because this implementation puts numbers in an order of its own.
            for name in ["k0é", "k1"] if KINDS[key.type] == "string" else [7]:
                if value.message_type is not None:
                    fill(getattr(message, field.name)[name], turn, depth + 1)
                else:
                    getattr(message, field.name)[name] = scalar(value, turn + len(getattr(message, field.name)))
        elif field.message_type is not None:
            if depth > 3:
                continue
            if field.is_repeated:
                fill(getattr(message, field.name).add(), turn + 1, depth + 1)
                getattr(message, field.name).add()
            else:
                getattr(message, field.name).SetInParent()
                fill(getattr(message, field.name), turn + 1, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(scalar(field, turn + index) for index in range(3))
        else:
            setattr(message, field.name, scalar(field, turn))
    return message


def zeros(message):
    """What has presence is there and zero; all else is absent."""
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not is_opaque(field):
            if field.message_type is not None:
                getattr(message, field.name).SetInParent()
            else:
                setattr(message, field.name, field.default_value)
    return message


def samples(descriptor):
    yield create(descriptor)
    yield zeros(create(descriptor))
    for turn in range(2):
        yield fill(create(descriptor), turn)
    for oneof in descriptor.oneofs:
        if len(oneof.fields) > 1:
            for field in oneof.fields:
                yield fill(create(descriptor), field.number, chosen=field)


def in_order(message, value, twirp):
    """The members of a dictionary in the order of field numbers, maps in the order of keys. With `twirp` also null
    for absent messages, as the reference's encoder writes them."""
    if not isinstance(value, dict):
        return value
    ordered = {}
    for field in sorted(message.DESCRIPTOR.fields, key=lambda field: field.number):
        name = field.name if twirp else field.json_name
        if name not in value:
            oneof = field.containing_oneof
            if twirp and field.message_type is not None and not field.is_repeated and (
                    oneof is None or len(oneof.fields) == 1):
                ordered[name] = None
            continue
        member, inner = value[name], getattr(message, field.name)
        if is_map(field):
            nested = field.message_type.fields_by_name["value"].message_type is not None
            ordered[name] = {
                str(key): in_order(inner[key], member[str(key)], twirp) if nested else member[str(key)]
                for key in sorted(inner)}
        elif field.message_type is None:
            ordered[name] = member
        elif field.is_repeated:
            ordered[name] = [in_order(*pair, twirp) for pair in zip(inner, member)]
        else:
            ordered[name] = in_order(inner, member, twirp)
    return ordered


def to_json(message, twirp=False):
    value = json_format.MessageToDict(
        message, preserving_proto_field_name=twirp, always_print_fields_with_no_presence=twirp)
    return json.dumps(in_order(message, value, twirp), ensure_ascii=False, separators=(",", ":"))


def descriptors():
    todo = [
        message for module in (rtc, models, room, webhook, metrics)
        for message in module.DESCRIPTOR.message_types_by_name.values()]
    while todo:
        message = todo.pop(0)
        todo = [nested for nested in message.nested_types if not nested.GetOptions().map_entry] + todo
        if message.full_name not in SKIPPED:
            yield message


def enums():
    files = [module.DESCRIPTOR for module in (rtc, models, room, webhook, metrics)]
    for file in files:
        yield from file.enum_types_by_name.values()
        for message in file.message_types_by_name.values():
            if message.full_name not in SKIPPED - {"livekit.Encryption", "livekit.DataStream"}:
                yield from message.enum_types


def golden(folder):
    with open(folder / "messages.txt", "w", encoding="utf-8") as file:
        for descriptor in descriptors():
            lines = []
            for message in samples(descriptor):
                # Deterministic bytes, but members of a map come in any order.
                line = f"{message.SerializeToString(deterministic=True).hex()}\t{to_json(message)}"
                if line not in lines:
                    lines.append(line)
            for line in lines:
                file.write(f"{descriptor.full_name.removeprefix('livekit.')}\t{line}\n")
    with open(folder / "twirp.txt", "w", encoding="utf-8") as file:
        for name in TWIRP:
            descriptor = POOL.FindMessageTypeByName("livekit." + name)
            for message in (create(descriptor), fill(create(descriptor), 3)):
                file.write(f"{name}\t{message.SerializeToString(deterministic=True).hex()}\t{to_json(message, True)}\n")
    with open(folder / "enums.txt", "w", encoding="utf-8") as file:
        for descriptor in enums():
            if descriptor.full_name not in SKIPPED_ENUMS:
                values = " ".join(f"{value.name}={value.number}" for value in descriptor.values)
                file.write(f"{descriptor.full_name.removeprefix('livekit.')} {values}\n")


def check():
    failed = count = 0
    for line in sys.stdin:
        name, wire, *texts = line.rstrip("\n").split("\t")
        descriptor = POOL.FindMessageTypeByName("livekit." + name)
        expected = create(descriptor)
        count += 1
        try:
            expected.ParseFromString(bytes.fromhex(wire))
            for text in texts:
                if json_format.Parse(text, create(descriptor)) != expected:
                    raise ValueError("another message")
        except Exception as error:  # Whatever it is, the line is at fault.
            failed += 1
            print(f"{name}: {error}: {line.strip()[:400]}")
    print(f"{count} lines, {failed} wrong")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["golden"] and len(sys.argv) == 3:
        golden(pathlib.Path(sys.argv[2]))
    elif sys.argv[1:] == ["check"]:
        sys.exit(check())
    else:
        sys.exit(__doc__)
