import PalbeSDP

extension FuzzTarget {
  /// What parses must print and parse again to the same sections; every accessor may be asked.
  static let sdp = FuzzTarget(name: "sdp") { bytes in
    guard let offer = try? SessionDescription(parsing: String(decoding: bytes, as: UTF8.self)) else { return }
    _ = (offer.bundle, offer.transport, offer.isICELite)
    try? offer.validate(as: .offer)
    let media = offer.media.map { section in
      _ = (section.candidates, section.msids, section.sources, section.sourceGroups, section.codecs)
      _ = (
        section.sctpPort, section.maxMessageSize, offer.transport(of: section), offer.direction(of: section)
      )
      var answer = section.answer(direction: .recvonly)
      answer.acceptSimulcast(of: section)
      return answer
    }
    let answer = SessionDescription(
      answering: offer, origin: SDPOrigin(sessionID: 1, version: 1), isICELite: true, media: media)
    for description in [offer, answer] where description.description.utf8.count <= 256 * 1_024 {
      guard let again = try? SessionDescription(parsing: description.description) else {
        preconditionFailure("does not parse again")
      }
      precondition(again.media == description.media, "does not round-trip")
    }
  }
}
