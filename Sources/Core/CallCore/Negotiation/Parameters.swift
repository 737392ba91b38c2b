import PalbeICE
import PalbeRTP
import PalbeUnits

/// How a track of ours is sent, by the answer.
struct SendingParameters: Hashable, Sendable {
  var payloadType: PayloadType
  var extensionIDs: RTPExtensionIDs
  var mid: ShortText?
}

/// What a section receives, by the answer.
struct ReceivingParameters: Hashable, Sendable {
  /// The track's sid.
  var sid: String
  /// The sid of the participant, where the msid names it.
  var participantSid: String?
  /// The stream; nil when it is found by its first packet's MID.
  var ssrc: SSRC?
  /// Its retransmissions.
  var repairSSRC: SSRC?
  var payloadType: PayloadType
  var repairPayloadType: PayloadType?
  /// The sender answers NACKs.
  var repairs: Bool
}

/// Where the peer is and what it shows, by the answer.
struct TransportDescription: Hashable, Sendable {
  var credentials: ICECredentials
  var isLite: Bool
  /// SHA-256 of its certificate.
  var fingerprint: [UInt8]
  /// True when the peer opens the DTLS connection, so that we are its server.
  var isActive: Bool
  var candidates: [ICECandidate]
  var isComplete: Bool
}

/// A media section of our offers. Its place in the description is its place in the list, for good.
struct Section: Hashable, Sendable {
  enum Use: Hashable, Sendable {
    case sending(LocalTrack)
    case receiving
  }
  var mid: String
  var kind: MediaKind
  var use: Use
}

/// An answer that was taken apart. The lists have one entry for each section.
struct Answer: Sendable {
  var transport: TransportDescription
  var sending: [LocalTrack: SendingParameters] = [:]
  /// By mid; sections without a track are left out.
  var receiving: [String: ReceivingParameters] = [:]
}

/// Why an answer cannot be used.
enum AnswerError: Error, Equatable, Sendable {
  case malformed
  /// It has other sections than our offer.
  case sections
  /// It lacks credentials, a SHA-256 fingerprint or a role.
  case transport
}
