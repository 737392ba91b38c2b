import Foundation
import PalbeCall
import PalbeCallCore
import PalbeUnits
import PalbeWire
import Synchronization

/// What a person sees of a call: a line for each event, and a table at its end.
final class JoinSummary: Sendable {
  private struct State {
    var pictures: [RemoteTrackID: Int] = [:]
    var identities: [RemoteTrackID: String] = [:]
    var unreadable: Set<String> = []
    var refused: [LocalTrack] = []
  }

  private let state = Mutex(State())

  /// A line for an event; nil where there is nothing to tell.
  func line(for event: CallEvent) -> String? {
    switch event {
    case .connected, .keyFrameRequested, .activeSpeakersChanged, .participantUpdated: return nil
    case .disconnected(.left): return nil
    case .disconnected(let reason): return "disconnected: \(CallEngineError.words(reason))"
    case .participantConnected(let identity): return "\(printable(identity)) is here"
    case .participantDisconnected(let identity): return "\(printable(identity)) left"
    case .trackSubscribed(let track, let identity, let kind, let isEncrypted):
      state.withLock { $0.identities[track] = identity }
      let protection = isEncrypted ? "encrypted end to end" : "not encrypted end to end"
      return "\(printable(identity)): \(Self.word(kind)), \(protection)"
    case .trackUnsubscribed(let track):
      guard let identity = state.withLock({ $0.identities[track] }) else { return nil }
      return "\(printable(identity)): a track ended"
    case .decryptionFailing(let identity, let kind, _):
      // Told once a participant and kind; the table has the counts.
      let isNew = state.withLock { $0.unreadable.insert("\(kind) \(identity)").inserted }
      guard isNew else { return nil }
      return "\(printable(identity)): cannot decrypt the \(Self.word(kind)); are key and encryption the same?"
    case .mutedByServer(let track, let muted):
      return "the server \(muted ? "muted" : "unmuted") the \(Self.word(track))"
    case .refusedByServer(let track, let reason):
      state.withLock { $0.refused.append(track) }
      return "the server does not take the \(Self.word(track)) (\(reason)): nobody gets it. "
        + "Does the room ask for end-to-end encryption, or does the token not allow it?"
    }
  }

  /// A picture was decoded.
  func pictureDecoded(_ track: RemoteTrackID) { state.withLock { $0.pictures[track, default: 0] += 1 } }

  /// Tracks of ours that the server did not take.
  var refusedTracks: [LocalTrack] { state.withLock { $0.refused } }

  private static func word(_ track: LocalTrack) -> String { track == .camera ? "camera" : "microphone" }
  private static func word(_ kind: MediaKind) -> String { kind == .audio ? "audio" : "video" }

  /// The table at the end of a call that lasted `duration`.
  func table(_ statistics: CallStatistics, duration: TimeDelta) -> String {
    func number(_ value: Double, _ digits: Int = 1) -> String { String(format: "%.\(digits)f", value) }
    let seconds = max(0.001, duration.inSeconds)
    let pictures = state.withLock { state in
      state.pictures.reduce(into: [String: Int]()) { sums, entry in
        sums[state.identities[entry.key] ?? "", default: 0] += entry.value
      }
    }
    let roundTrip = statistics.roundTrip.map { "\(number($0.inMilliseconds, 2)) ms" } ?? "unknown"
    var lines = [
      "call of \(number(duration.inSeconds)) s: round trip \(roundTrip), key epochs \(statistics.keyEpochs)",
      "sent: \(statistics.sentPackets) packets, \(number(Double(statistics.sentBytes) * 8 / seconds / 1_000, 0)) kbit/s, "
        + "\(statistics.retransmittedPackets) repeated, \(statistics.sealedFrames) frames sealed",
    ]
    for track in statistics.remoteTracks {
      let sent = track.packets + track.lostPackets
      let loss = sent == 0 ? 0 : 100 * Double(track.lostPackets) / Double(sent)
      var line =
        "\(printable(track.identity)) \(Self.word(track.kind)): \(track.packets) packets, "
        + "\(number(Double(track.bytes) * 8 / seconds / 1_000, 0)) kbit/s, loss \(number(loss, 2)) %, "
        + "jitter \(number(track.jitter.inMilliseconds)) ms"
      switch track.kind {
      case .video:
        line +=
          ", \(pictures[track.identity] ?? 0) pictures decoded, \(track.keyFrameRequests) key frames asked for"
      case .audio: line += ", \(track.playedPackets) played, \(track.concealedPackets) concealed"
      }
      if track.failedFrames > 0 {
        line +=
          ", \(track.failedFrames) not decrypted, of which \(track.framesWithoutKey) for want of their key"
      }
      lines.append(line)
    }
    if statistics.remoteTracks.isEmpty { lines.append("nobody sent anything") }
    return lines.joined(separator: "\n")
  }
}
