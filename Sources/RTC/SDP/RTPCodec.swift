import PalbeUnits

/// A codec of a media section: what its payload type means there.
public struct RTPCodec: Equatable, Sendable {
  /// The number in the packets; an answer uses the one that was offered.
  public var payloadType: PayloadType
  /// As written; compare with `isNamed`.
  public var name: String
  /// Hz.
  public var clockRate: UInt32
  /// Of audio; 1 for video and where nothing is said.
  public var channels: UInt8
  /// Format parameters as they stand, such as `minptime=10;useinbandfec=1`; empty when there are none.
  public var parameters: String
  /// Such as `nack`, `nack pli`, `transport-cc` (RFC 4585 §4.2).
  public var feedback: [String]

  /// A codec to offer.
  public init(
    _ payloadType: UInt8, _ name: String, clockRate: UInt32, channels: UInt8 = 1, parameters: String = "",
    feedback: [String] = []
  ) {
    self.payloadType = PayloadType(payloadType)
    self.name = name
    self.clockRate = clockRate
    self.channels = channels
    self.parameters = parameters
    self.feedback = feedback
  }

  /// Codec names have no case (RFC 4855 §3).
  public func isNamed(_ other: String) -> Bool { name.lowercased() == other.lowercased() }

  /// The value of one format parameter; names have no case.
  public func parameter(_ name: String) -> String? {
    for pair in parameters.split(separator: ";") {
      let parts = pair.split(separator: "=", maxSplits: 1)
      guard let key = parts.first, key.trimmed.lowercased() == name.lowercased() else { continue }
      return parts.count == 2 ? String(parts[1].trimmed) : ""
    }
    return nil
  }

  /// Of a retransmission codec: the payload type it repairs (RFC 4588 §8.1).
  public var associatedPayloadType: PayloadType? {
    guard isNamed("rtx"), let number: UInt8 = parameter("apt").flatMap({ decimal($0) }), number < 128 else {
      return nil
    }
    return PayloadType(number)
  }
}

extension MediaSection {
  /// The codecs in the order of preference, with their retransmission codecs. Formats that are no payload
  /// type, or that nothing describes, are left out; static types (RFC 3551 §6) need no description.
  public var codecs: [RTPCodec] {
    get {
      var described: [UInt8: (map: String, parameters: String)] = [:]
      for value in attributes.values("rtpmap") {
        guard let (number, rest) = Self.numbered(value), described[number] == nil else { continue }
        described[number] = (String(rest), "")
      }
      for value in attributes.values("fmtp") {
        guard let (number, rest) = Self.numbered(value) else { continue }
        described[number, default: (Self.staticMap[number] ?? "", "")].parameters = String(rest)
      }
      var feedback: [UInt8: [String]] = [:]
      var feedbackOfAll: [String] = []
      for value in attributes.values("rtcp-fb") {
        if let (number, rest) = Self.numbered(value) {
          feedback[number, default: []].append(String(rest))
        } else if let (word, rest) = splitWord(value), word == "*" {
          feedbackOfAll.append(String(rest))
        }
      }
      return payloadTypes.compactMap { type in
        let number = type.rawValue
        let (map, parameters) = described[number] ?? ("", "")
        return RTPCodec(
          number, map: map.isEmpty ? Self.staticMap[number] ?? "" : map, parameters: parameters,
          feedback: (feedback[number] ?? []) + feedbackOfAll)
      }
    }
    set {
      formats = newValue.map { String($0.payloadType.rawValue) }
      attributes.all.removeAll { ["rtpmap", "fmtp", "rtcp-fb"].contains($0.name) }
      for codec in newValue {
        let number = codec.payloadType.rawValue
        let channels = codec.channels > 1 ? "/\(codec.channels)" : ""
        attributes.append("rtpmap", "\(number) \(codec.name)/\(codec.clockRate)\(channels)")
        for feedback in codec.feedback { attributes.append("rtcp-fb", "\(number) \(feedback)") }
        if !codec.parameters.isEmpty { attributes.append("fmtp", "\(number) \(codec.parameters)") }
      }
    }
  }

  /// The formats that are payload types, each once.
  public var payloadTypes: [PayloadType] {
    var seen = Set<UInt8>()
    return formats.compactMap { format in
      guard let number: UInt8 = decimal(format), number < 128, seen.insert(number).inserted else {
        return nil
      }
      return PayloadType(number)
    }
  }

  /// The number before the first space, and the rest; nil unless it is a payload type.
  private static func numbered(_ value: String) -> (UInt8, Substring)? {
    guard let (word, rest) = splitWord(value), let number: UInt8 = decimal(word), number < 128 else {
      return nil
    }
    return (number, rest)
  }

  /// RFC 3551 §6, those that clients still offer without an `a=rtpmap`.
  private static let staticMap: [UInt8: String] = [
    0: "PCMU/8000", 3: "GSM/8000", 8: "PCMA/8000", 9: "G722/8000", 13: "CN/8000",
  ]
}

extension RTPCodec {
  /// From `name/clock[/channels]`.
  init?(_ number: UInt8, map: String, parameters: String, feedback: [String]) {
    let parts = map.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 || parts.count == 3, !parts[0].isEmpty, let clockRate: UInt32 = decimal(parts[1]),
      clockRate > 0
    else { return nil }
    var channels: UInt8 = 1
    if parts.count == 3 {
      guard let count: UInt8 = decimal(parts[2]), count > 0 else { return nil }
      channels = count
    }
    self.init(
      number, String(parts[0]), clockRate: clockRate, channels: channels, parameters: parameters,
      feedback: feedback)
  }
}

extension Substring {
  /// Without spaces at the ends.
  var trimmed: Substring {
    var part = drop { $0 == " " }
    while part.last == " " { part.removeLast() }
    return part
  }
}
