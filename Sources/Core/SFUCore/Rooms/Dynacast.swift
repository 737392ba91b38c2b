import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// Which simulcast layers of a track anybody wants, so that its publisher need not encode the others.
///
/// What is wanted more is told at once; what is wanted less only when it has been so for five seconds, so that a
/// subscriber that scrolls past does not stop a layer.
struct Dynacast {
  private static let downgradeDelay = TimeDelta.seconds(5)

  /// The highest layer that the publisher was told of, by rank; -1 is none. It begins with all of them.
  private(set) var toldRank = 2
  private var downgradeAt: Instant?

  /// Looks at what is wanted now. True when the publisher is to be told `toldRank`.
  mutating func update(wanted rank: Int, at now: Instant) -> Bool {
    guard rank < toldRank else {
      downgradeAt = nil
      guard rank > toldRank else { return false }
      toldRank = rank
      return true
    }
    let due = downgradeAt ?? now + Self.downgradeDelay
    downgradeAt = due
    guard now >= due else { return false }
    downgradeAt = nil
    toldRank = rank
    return true
  }

  var nextDeadline: Instant? { downgradeAt }
}

extension PublishedTrack {
  /// Simulcast video, whose layers can be wanted one by one.
  private var hasLayers: Bool { kind == .video && isAnnounced && (info.simulcast || info.layers.count > 1) }

  private var wantedRank: Int {
    downTracks.lazy.filter { !$0.isDisabled && !$0.isEnded }.map { min(2, $0.wantedRank) }.max() ?? -1
  }

  /// Tells the publisher when other layers are wanted than it knows.
  func updateDynacast(at now: Instant) {
    guard hasLayers else { return }
    if dynacast.update(wanted: wantedRank, at: now) {
      let qualities = (0...2).map { rank in
        LiveKit.SubscribedQuality.with {
          $0.quality = LiveKit.VideoQuality(rawValue: Int32(rank))
          $0.enabled = rank <= dynacast.toldRank
        }
      }
      publisher.send(
        .subscribedQualityUpdate(
          .with {
            $0.trackSid = sid
            $0.subscribedQualities = qualities
            $0.subscribedCodecs = [
              .with {
                $0.codec = (section?.media ?? .vp8).rawValue.lowercased()
                $0.qualities = qualities
              }
            ]
          }))
    }
    if let deadline = dynacast.nextDeadline { publisher.wake(at: deadline) }
  }
}
