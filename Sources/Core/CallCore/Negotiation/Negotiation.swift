import PalbeLiveKit
import PalbeUnits

/// Offers and answers: we offer, the server answers, one offer at a time.
///
///     settled ──needs sections──▶ offered(id) ──answer(id)──▶ settled, or offered(id + 1) if more is needed
struct Negotiation: Sendable {
  /// Sections a session has at most; a description of more would not be read.
  static let sectionLimit = 240

  let builder: OfferBuilder
  private(set) var sections: [Section] = []
  /// The last offer's number, from 1.
  private(set) var offerID: UInt32 = 0
  private(set) var isOutstanding = false
  private var needsOffer = true

  init(builder: OfferBuilder, publishes: [MediaSender], audios: Int, videos: Int) {
    self.builder = builder
    for sender in publishes { append(sender.kind, .sending(sender.track)) }
    addReceiving(audios: audios, videos: videos)
  }

  /// The server has tracks for us: it waits for an offer, with so many more sections, or none more if there
  /// are free ones.
  mutating func require(audios: UInt32, videos: UInt32) {
    needsOffer = true
    addReceiving(
      audios: Int(min(audios, UInt32(Self.sectionLimit))), videos: Int(min(videos, UInt32(Self.sectionLimit)))
    )
  }

  /// What the section with that mid carries.
  func kind(mid: String) -> MediaKind? { sections.first { $0.mid == mid }?.kind }

  /// The next offer, when one is needed and none is outstanding.
  mutating func pollOffer(senders: [MediaSender]) -> LiveKit.SessionDescription? {
    guard needsOffer, !isOutstanding else { return nil }
    needsOffer = false
    isOutstanding = true
    offerID += 1
    offeredCount = sections.count
    var offer = LiveKit.SessionDescription()
    offer.type = "offer"
    offer.sdp = builder.description(of: sections, senders: senders, version: UInt64(offerID))
    offer.id = offerID
    return offer
  }

  /// The sections of the last offer.
  private var offeredCount = 0

  /// The answer to the last offer; nil for one to an older offer.
  mutating func accept(_ answer: LiveKit.SessionDescription) throws(AnswerError) -> Answer? {
    guard isOutstanding, answer.id == 0 || answer.id == offerID else { return nil }
    isOutstanding = false
    return try AnswerReader.read(
      answer.sdp, trackSids: answer.midToTrackId, offered: Array(sections.prefix(offeredCount)))
  }

  private mutating func addReceiving(audios: Int, videos: Int) {
    for _ in 0..<max(0, audios) { append(.audio, .receiving) }
    for _ in 0..<max(0, videos) { append(.video, .receiving) }
  }

  private mutating func append(_ kind: MediaKind, _ use: Section.Use) {
    guard sections.count < Self.sectionLimit else { return }
    sections.append(Section(mid: String(sections.count), kind: kind, use: use))
  }
}
