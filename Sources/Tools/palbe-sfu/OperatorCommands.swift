import Glibc
import PalbeCommandLine
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUSettings
import PalbeServerSettings

/// The commands of an operator at a shell: calls of the RoomService of a running server.
enum OperatorCommands {
  private static let options: [Option] = [
    .value(
      "--url", "URL",
      "the server (default: PALBE_SFU_URL, LIVEKIT_URL, or the configuration's port on this machine)"),
    Settings.schema.configOption, SFUKeys.keys.commandOption, SFUKeys.keyFile.commandOption,
    SFUKeys.development.commandOption,
    .flag("--json", "prints what the server answers as JSON"),
  ]

  static let rooms = Command(
    name: "rooms", summary: "lists the rooms of a running server", options: options,
    examples: [
      "palbe-sfu rooms --config /etc/palbe/sfu.yaml",
      "palbe-sfu rooms --url https://sfu.example.org --key app:…",
    ])
  static let participants = Command(
    name: "participants", summary: "lists who is in a room, and their tracks", operands: ["ROOM"],
    options: options,
    examples: ["palbe-sfu participants hall --dev"])
  static let kick = Command(
    name: "kick", summary: "takes a participant out of its room", operands: ["ROOM", "IDENTITY"],
    options: options,
    examples: ["palbe-sfu kick hall anna --dev"])
  static let mute = Command(
    name: "mute", summary: "mutes a track for everyone in the room", operands: ["ROOM", "IDENTITY", "TRACK"],
    options: options + [.flag("--unmute", "unmutes it, where room.enable_remote_unmute allows")],
    examples: ["palbe-sfu mute hall anna TR_AMx7Kq2Zt9Wb4c --dev"])
  static let close = Command(
    name: "close", summary: "ends a room: everyone in it must leave", operands: ["ROOM"], options: options,
    examples: ["palbe-sfu close hall --dev"])

  static let all = [rooms, participants, kick, mute, close]

  /// Carries one of them out. Ends the program: 1 when the server refuses or is not there, 2 for a misuse.
  static func run(_ name: String, _ arguments: ParsedArguments) {
    let caller = RoomServiceCaller(arguments)
    let operands = arguments.operands
    switch name {
    case rooms.name:
      let answer: LiveKit.ListRoomsResponse = caller.call(.listRooms, LiveKit.ListRoomsRequest())
      caller.show(answer, Table.rooms(answer))
    case participants.name:
      let answer: LiveKit.ListParticipantsResponse = caller.call(
        .listParticipants, LiveKit.ListParticipantsRequest.with { $0.room = operands[0] }, room: operands[0])
      caller.show(answer, Table.participants(answer))
    case kick.name:
      let request = LiveKit.RoomParticipantIdentity.with {
        $0.room = operands[0]
        $0.identity = operands[1]
      }
      let answer: LiveKit.RemoveParticipantResponse = caller.call(
        .removeParticipant, request, room: operands[0])
      caller.show(answer, nil)
    case mute.name:
      let request = LiveKit.MuteRoomTrackRequest.with {
        $0.room = operands[0]
        $0.identity = operands[1]
        $0.trackSid = operands[2]
        $0.muted = !arguments.has("--unmute")
      }
      let answer: LiveKit.MuteRoomTrackResponse = caller.call(.mutePublishedTrack, request, room: operands[0])
      caller.show(answer, nil)
    default:
      let answer: LiveKit.DeleteRoomResponse = caller.call(
        .deleteRoom, LiveKit.DeleteRoomRequest.with { $0.room = operands[0] })
      caller.show(answer, nil)
    }
  }
}

/// What is printed for a person: columns, a line each.
enum Table {
  static func rooms(_ answer: LiveKit.ListRoomsResponse) -> String {
    let now = WallClock.unixSeconds
    return lines(
      [["ROOM", "SID", "PARTICIPANTS", "PUBLISHERS", "AGE"]]
        + answer.rooms.sorted { $0.name < $1.name }.map {
          [
            shown($0.name), $0.sid, "\($0.numParticipants)", "\($0.numPublishers)",
            "\(max(0, now - $0.creationTime))s",
          ]
        })
  }

  static func participants(_ answer: LiveKit.ListParticipantsResponse) -> String {
    var rows = [["IDENTITY", "SID", "STATE", "TRACK", "KIND", "MUTED"]]
    for participant in answer.participants.sorted(by: { $0.identity < $1.identity }) {
      let head = [shown(participant.identity), participant.sid, word(participant.state)]
      if participant.tracks.isEmpty { rows.append(head + ["", "", ""]) }
      for track in participant.tracks {
        rows.append(head + [track.sid, word(track.type), track.muted ? "yes" : "no"])
      }
    }
    return lines(rows)
  }

  private static func word(_ value: some ProtobufEnum) -> String {
    value.name?.lowercased() ?? "\(value.rawValue)"
  }

  /// A name cannot forge a line or a column, or send the terminal anything.
  private static func shown(_ name: String) -> String {
    var text = ""
    for scalar in name.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .privateUse, .unassigned:
        text += "\\u{\(String(scalar.value, radix: 16))}"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  private static func lines(_ rows: [[String]]) -> String {
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
      return String(cells.joined(separator: "  ").reversed().drop { $0 == " " }.reversed())
    }.joined(separator: "\n")
  }
}
