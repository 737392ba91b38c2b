import PalbeCongestion
import PalbeFrameEncryption
public import PalbeUnits

/// What time makes due.
extension CallSession {
  /// When `handleTimeout` is due; at once when that lies in the past. Nil when nothing is.
  public var nextDeadline: Instant? {
    guard !isEnded else { return nil }
    var deadline = Instant.distantFuture
    func consider(_ due: Instant?) { if let due { deadline = min(deadline, due) } }
    consider(link.nextDeadline)
    consider(transport.nextDeadline)
    consider(protection.nextDeadline)
    consider(waiting.nextDeadline)
    for track in tracks { consider(track.failures.nextDeadline) }
    guard phase == .connected else { return deadline == .distantFuture ? nil : deadline }
    consider(nextReport)
    consider(feedback.nextDeadline)
    for sender in senders { consider(sender.throttle.nextDeadline) }
    for track in tracks {
      consider(track.stream?.nextDeadline ?? nil)
      // Nobody can be asked before the stream is known.
      if track.kind == .video, track.ssrc != nil { consider(track.video.nextDeadline) }
    }
    return deadline == .distantFuture ? nil : deadline
  }

  /// Does what is due.
  public mutating func handleTimeout(at now: Instant) {
    guard !isEnded else { return }
    if link.handleTimeout(at: now, unixMilliseconds: unixNanoseconds(at: now) / 1_000_000) {
      signalingClosed(at: now)
    }
    guard !isEnded else { return }
    transport.handleTimeout(at: now)
    followTransport(at: now)
    work(at: now)
  }

  /// What is due by time or by what has just happened.
  mutating func work(at now: Instant) {
    guard !isEnded else { return }
    expireWaiting(at: now)
    checkTracks(at: now)
    sendFeedback(at: now)
    sendReports(at: now)
    if phase == .connected { passKeyFrameRequests(at: now) }
    if transport.state == .failed { followTransport(at: now) }
  }

  /// Takes note of where the path stands.
  mutating func followTransport(at now: Instant) {
    switch (transport.state, phase) {
    case (.connected, .joining), (.connected, .joined):
      phase = .connected
      nextReport = now + Self.reportInterval
      report(.connected)
      // What waits for the path leaves with it: requests for key frames, above all.
      work(at: now)
    case (.failed, .joining), (.failed, .joined), (.failed, .connected):
      sendLeave()
      end(.connectionLost, at: now)
    default: break
    }
  }
}
