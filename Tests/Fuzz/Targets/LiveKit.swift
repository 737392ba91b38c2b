import PalbeLiveKit
import PalbeProtobuf

extension FuzzTarget {
  /// What decodes must encode and decode again to the same message.
  static let protobufSignalRequest = FuzzTarget(name: "protobuf-signal-request") { bytes in
    check(LiveKit.SignalRequest.self, bytes)
    check(LiveKit.WrappedJoinRequest.self, bytes)
    check(LiveKit.JoinRequest.self, bytes)
  }

  /// What decodes must encode and decode again to the same message.
  static let protobufSignalResponse = FuzzTarget(name: "protobuf-signal-response") { bytes in
    check(LiveKit.SignalResponse.self, bytes)
    check(LiveKit.DataPacket.self, bytes)
  }

  /// What reads is forwarded to something that reads, under the new handle and without a sender's name.
  static let dataTrackPacket = FuzzTarget(name: "data-track-packet") { bytes in
    guard let packet = try? LiveKit.DataTrackPacket(bytes.span) else { return }
    let forwarded = packet.forwarded(bytes, as: 0xfedc)
    guard let again = try? LiveKit.DataTrackPacket(forwarded.span) else {
      preconditionFailure("does not read again")
    }
    precondition(again.handle == 0xfedc && !again.namesSender, "not as it should be")
    precondition(again.isEncrypted == packet.isEncrypted, "its encryption changed")
  }

  /// What parses must print and parse again to the same candidate.
  static let candidateJSON = FuzzTarget(name: "candidate-json") { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    guard let candidate = try? LiveKit.CandidateInit(json: text) else { return }
    // Escaping may lengthen the text past the limit, which is then refused.
    guard candidate.json.utf8.count <= 4_096 else { return }
    let again = try? LiveKit.CandidateInit(json: candidate.json)
    precondition(again == candidate, "does not round-trip")
  }

  /// What parses must print and parse again to the same message, in both styles.
  static let protobufJSON = FuzzTarget(name: "protobuf-json") { bytes in
    checkJSON(LiveKit.SignalRequest.self, bytes)
    checkJSON(LiveKit.JoinRequest.self, bytes)
    checkJSON(LiveKit.SignalResponse.self, bytes)
    checkJSON(LiveKit.DataPacket.self, bytes)
    checkJSON(LiveKit.RoomConfiguration.self, bytes)
    checkJSON(LiveKit.WebhookEvent.self, bytes)
  }

  /// A request in either encoding, to every call: refused, or within the limits.
  static let roomServiceRequest = FuzzTarget(name: "room-service-request") { bytes in
    for method in LiveKit.RoomServiceMethod.allCases {
      for encoding in [LiveKit.TwirpEncoding.protobuf, .json] {
        do throws(LiveKit.TwirpError) {
          let request = try LiveKit.RoomServiceRequest(method, body: bytes, encoding: encoding)
          precondition((request.room?.utf8.count ?? 0) <= 256, "a name beyond the limit")
        } catch {
          precondition(error.code.httpStatus >= 400, "no failure")
          precondition((try? LiveKit.TwirpError(json: error.json)) == error, "does not round-trip")
        }
      }
    }
  }

  private static func checkJSON<Message: ProtobufMessage>(_ type: Message.Type, _ bytes: [UInt8]) {
    guard let message = try? Message(json: bytes) else { return }
    let expected = message.serialized()
    for style in [ProtobufJSONStyle.compact, .twirp] {
      guard let again = try? Message(json: message.json(style)) else {
        preconditionFailure("does not parse again")
      }
      precondition(again.serialized() == expected, "does not round-trip")
    }
  }

  private static func check<Message: ProtobufMessage>(_ type: Message.Type, _ bytes: [UInt8]) {
    guard let message = try? Message(serialized: bytes) else { return }
    // Bytes, because a number that is not a number equals nothing.
    let encoded = message.serialized()
    guard let again = try? Message(serialized: encoded) else { preconditionFailure("does not decode again") }
    precondition(again.serialized() == encoded, "does not round-trip")
  }
}
