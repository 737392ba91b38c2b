import PalbeFrameEncryption
import PalbeLiveKit
import PalbeRTP
import PalbeUnits

/// Seals our frames and opens others', in the format that the call agreed on. The one place where the formats differ.
///
/// Without a ring frames are as they are; the session asks `isOn` before it hands out anything that was not opened.
struct FrameProtection: ~Copyable {
  private let encryption: CallEncryption
  private var sframe: CallKeyRing?
  private var liveKit: LiveKitKeyRing?

  init(
    _ configuration: CallConfiguration, ledger: CallKeyLedger, random: RandomSource
  ) throws(FrameKeyError) {
    encryption = configuration.encryption
    sframe = nil
    liveKit = nil
    switch configuration.encryption {
    case .none: break
    case .sframe:
      sframe = try CallKeyRing(
        room: configuration.room, call: configuration.call ?? configuration.room,
        localIdentity: configuration.identity, ledger: ledger, random: random)
    case .liveKit(let agreed):
      liveKit = LiveKitKeyRing(
        localIdentity: configuration.identity, ledger: ledger, random: random, configuration: agreed)
    }
  }

  var isOn: Bool { encryption != .none }

  // MARK: Keys

  mutating func install(_ key: Span<UInt8>, sending: SendSwitch, at now: Instant) throws(FrameKeyError) {
    try sframe?.install(key, sending: sending, at: now)
  }

  mutating func confirmSendKey(at now: Instant) { sframe?.confirmSendKey(at: now) }

  mutating func setLiveKitKey(
    _ key: consuming LiveKitKey, index: Int, identity: String?
  ) throws(FrameKeyError) {
    try liveKit?.setKey(key, index: index, identity: identity)
  }

  mutating func ratchet(index: Int) throws(FrameKeyError) { try liveKit?.ratchet(index: index) }

  mutating func setSendIndex(_ index: Int) { liveKit?.sendIndex = index }

  // MARK: Sending

  /// Room in front of a frame that is sealed in place, and behind it.
  static let headroom = FrameSealer.headroom
  static func tailroom(_ byteCount: Int) -> Int {
    max(FrameSealer.tailroom, LiveKitKeyRing.tailroom(forFrameOf: byteCount, codec: .vp8))
  }

  /// A handle for a track of ours; nil without end-to-end encryption.
  mutating func makeSender(_ track: LocalTrack, ssrc: SSRC) throws(FrameKeyError) -> FrameSenderID? {
    switch encryption {
    case .none: return nil
    case .sframe:
      return try sframe?.makeSender(
        source: track == .camera ? .camera : .microphone, codec: track == .camera ? .vp8 : .opus)
    case .liveKit:
      return try liveKit?.makeSender(codec: track == .camera ? .vp8 : .audio, ssrc: ssrc.rawValue)
    }
  }

  /// Seals `buffer[frame]` in place. Without a ring or a sender there is no key either: nothing leaves.
  @_lifetime(buffer: copy buffer)
  mutating func seal(
    _ sender: FrameSenderID?, in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, timestamp: RTPTimestamp,
    at now: Instant
  ) throws(SealError) -> Range<Int> {
    guard let sender else { throw .noKey }
    switch encryption {
    case .none: throw .noKey
    case .sframe:
      guard let sealed = try sframe?.seal(sender, in: &buffer, frame: frame, at: now) else { throw .noKey }
      return sealed
    case .liveKit:
      guard
        let sealed = try liveKit?.seal(sender, in: &buffer, frame: frame, timestamp: timestamp.rawValue)
      else { throw .noKey }
      return sealed
    }
  }

  // MARK: Receiving

  /// How a remote track is to be read. One that ought to be sealed and is not must not be played, nor one that we cannot open.
  mutating func protection(
    of info: LiveKit.TrackInfo, identity: String, kind: MediaKind
  ) -> RemoteTrack.Protection {
    var receiver: FrameReceiverID?
    switch (encryption, info.encryption) {
    case (.none, .none): return .plain
    case (.sframe, .custom):
      receiver = try? sframe?.makeReceiver(
        identity: identity, source: RemoteTrack.source(of: info), codec: kind == .video ? .vp8 : .opus)
    case (.liveKit, .gcm):
      receiver = try? liveKit?.makeReceiver(identity: identity, codec: kind == .video ? .vp8 : .audio)
    default: break
    }
    return receiver.map { .sealed($0) } ?? .refused
  }

  /// Opens `buffer[frame]` in place. Without a ring nothing opens.
  @_lifetime(buffer: copy buffer)
  mutating func open(
    _ receiver: FrameReceiverID, in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, tag: UInt64,
    at now: Instant
  ) -> OpenResult {
    switch encryption {
    case .none: .failed(.unknownReceiver)
    case .sframe:
      sframe?.open(receiver, in: &buffer, frame: frame, tag: tag, at: now) ?? .failed(.unknownReceiver)
    case .liveKit: liveKit?.open(receiver, in: &buffer, frame: frame, at: now) ?? .failed(.unknownReceiver)
    }
  }

  mutating func pollReleased(at now: Instant) -> ReleasedFrame? { sframe?.pollReleased(at: now) ?? nil }

  mutating func participantLeft(identity: String) {
    sframe?.participantLeft(identity: identity)
    liveKit?.participantLeft(identity: identity)
  }

  // MARK: Time and counts

  /// Does what is due. What the rings report of keys and participants the session counts itself.
  mutating func handleTimeout(at now: Instant) {
    sframe?.handleTimeout(at: now)
    while sframe?.pollEvent() != nil {}
    while liveKit?.pollEvent() != nil {}
  }

  var nextDeadline: Instant? {
    switch sframe {
    case .some(let ring): ring.nextDeadline
    case nil: nil
    }
  }

  /// Nil without end-to-end encryption.
  var statistics: FrameStatistics? {
    switch sframe {
    case .some(let ring): return ring.statistics
    case nil: break
    }
    switch liveKit {
    case .some(let ring): return ring.statistics
    case nil: return nil
    }
  }
}

extension CallEncryption {
  /// What a track of ours is announced with.
  var announced: LiveKit.EncryptionType {
    switch self {
    case .none: .none
    case .sframe: .custom
    case .liveKit: .gcm
    }
  }
}
