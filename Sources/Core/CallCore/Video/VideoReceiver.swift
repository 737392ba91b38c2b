import PalbeRTP
import PalbeUnits

/// Turns a track's VP8 packets into whole frames in decoding order, and knows when only a key frame helps.
///
/// A missing packet is waited for (and asked for again, elsewhere) for `repairTime`; then frames go on at
/// the next key frame, which is asked for. If the packet comes after all before that key frame, frames go
/// on from there.
struct VideoReceiver: ~Copyable {
  private var assembler: VP8FrameAssembler
  private let repairTime: TimeDelta
  /// The packet that frames wait for, and since when.
  private var gap: (sequence: ExtendedSequenceNumber, since: Instant)?
  private var isGivenUp = false
  var chain = FrameChain()
  var asker = KeyFrameRequester(interval: .milliseconds(500))

  /// - Parameter capacity: packets in the window.
  init(repairTime: TimeDelta, capacity: Int = 1_024) {
    assembler = VP8FrameAssembler(capacity: capacity)
    self.repairTime = repairTime
    asker.want()
  }

  /// Takes up the payload of one packet.
  mutating func insert(
    _ payload: Span<UInt8>, header: RTPHeader, sequence: ExtendedSequenceNumber, at now: Instant
  ) {
    if assembler.insert(payload, header: header, sequence: sequence, at: now) == .restarted { giveUp() }
  }

  /// The next whole frame with its number in the chain; nil while one of its packets is missing.
  mutating func nextFrame(at now: Instant) -> (frame: VP8AssembledFrame, serial: UInt64)? {
    if let frame = assembler.nextFrame() { return passOn(frame) }
    guard isStuck(at: now), assembler.skipToKeyFrame(), let frame = assembler.nextFrame() else { return nil }
    chain.breakOff()
    return passOn(frame)
  }

  private mutating func passOn(_ frame: VP8AssembledFrame) -> (frame: VP8AssembledFrame, serial: UInt64) {
    gap = nil
    isGivenUp = false
    if frame.isKeyFrame { asker.rest() }
    return (frame, chain.number())
  }

  /// Notes what is missing. True when it is given up: a key frame is then asked for.
  private mutating func isStuck(at now: Instant) -> Bool {
    guard !assembler.needsKeyFrame, let missing = assembler.missing else {
      if assembler.needsKeyFrame { asker.want() }
      gap = nil
      isGivenUp = false
      return false
    }
    if gap?.sequence != missing { gap = (missing, now) }
    isGivenUp = gap.map { now - $0.since >= repairTime } ?? false
    if isGivenUp { asker.want() }
    return isGivenUp
  }

  /// A frame is lost for good.
  mutating func giveUp() {
    chain.breakOff()
    asker.want()
  }

  /// When a missing packet is given up. What was given up waits for a key frame, not for time.
  var repairDeadline: Instant? { isGivenUp ? nil : gap.map { $0.since + repairTime } }

  /// When there is something to ask for or to give up.
  var nextDeadline: Instant? {
    guard let repairDeadline else { return asker.nextDeadline }
    return asker.nextDeadline.map { min($0, repairDeadline) } ?? repairDeadline
  }
}
