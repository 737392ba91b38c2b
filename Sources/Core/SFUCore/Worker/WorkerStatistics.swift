import PalbeLiveKit
import PalbeRTP
import PalbeUnits

/// How often something happened, by its size.
public struct Histogram: Sendable, Equatable {
  /// Upper bounds, rising.
  public let bounds: [Double]
  /// One more than bounds: the last is for what is above them all. Not summed up.
  public private(set) var counts: [UInt64]
  public private(set) var sum = 0.0

  /// Nothing happened yet.
  public init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  mutating func observe(_ value: Double) {
    let index = bounds.firstIndex { value <= $0 } ?? bounds.count
    counts[index] += 1
    sum += value
  }

  /// What another one with the same bounds saw.
  mutating func add(_ other: Histogram) {
    guard other.bounds == bounds else { return }
    for index in counts.indices { counts[index] += other.counts[index] }
    sum += other.sum
  }
}

/// Packets of media, without what protects them.
public struct TrafficCount: Sendable, Equatable {
  public var packets: UInt64 = 0
  /// Payload.
  public var bytes: UInt64 = 0

  /// None.
  public init() {}

  mutating func add(_ other: TrafficCount) {
    packets += other.packets
    bytes += other.bytes
  }

  mutating func count(packetOf byteCount: Int) {
    packets += 1
    bytes += UInt64(byteCount)
  }

  mutating func add(_ statistics: SenderStatistics) {
    packets += statistics.packetCount
    bytes += statistics.byteCount
  }

  mutating func add(_ statistics: ReceiverStatistics) {
    packets += statistics.packetCount
    bytes += statistics.byteCount
  }
}

/// What a worker has done since it began, apart from what present streams count themselves.
///
/// A packet costs nothing here: its stream counts it for its reports anyway, and a stream that ends is added up.
public struct WorkerTotals: Sendable, Equatable {
  public internal(set) var received = TrafficCount()
  /// RTX of publishers.
  public internal(set) var repairsReceived = TrafficCount()
  /// Without repairs.
  public internal(set) var sent = TrafficCount()
  /// Packets that subscribers asked for again and got; bytes with all that is around the payload.
  public internal(set) var repairsSent = TrafficCount()
  /// Packets that were kept back because their numbers had been used under the same key: a fault of ours.
  public private(set) var refused: UInt64 = 0
  /// Packets of publishers that never came.
  public internal(set) var lost: UInt64 = 0
  /// Packets that subscribers asked for.
  public internal(set) var nacksReceived: UInt64 = 0
  /// Packets that publishers were asked for.
  public internal(set) var nacksSent: UInt64 = 0
  public internal(set) var pictureLossesReceived: UInt64 = 0
  public internal(set) var pictureLossesSent: UInt64 = 0
  public internal(set) var intraRequestsReceived: UInt64 = 0
  /// Signaling was accepted.
  public internal(set) var joins: UInt64 = 0
  public internal(set) var joinsRefused: UInt64 = 0
  public private(set) var connections: UInt64 = 0
  public private(set) var connectMilliseconds = Histogram(
    bounds: [50, 100, 200, 300, 500, 700, 1_000, 2_000, 5_000, 10_000])
  public private(set) var sessionMilliseconds = Histogram(
    bounds: [1_000, 10_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000])
  public private(set) var roomSeconds = Histogram(
    bounds: [5, 10, 60, 300, 600, 1_800, 3_600, 7_200, 18_000, 36_000])
  public private(set) var roundTripMilliseconds = Histogram(
    bounds: [50, 100, 150, 200, 250, 500, 750, 1_000, 5_000, 10_000])
  public private(set) var lossPercents = Histogram(bounds: [0, 0.1, 0.3, 0.5, 0.7, 1, 5, 10, 40, 100])
  public private(set) var scores = Histogram(bounds: [1, 2, 2.5, 3, 3.25, 3.5, 3.75, 4, 4.25, 4.5])

  mutating func connected(after time: TimeDelta) {
    connections += 1
    connectMilliseconds.observe(time.inMilliseconds)
  }

  mutating func departed(_ participant: Participant, at now: Instant) {
    sessionMilliseconds.observe((now - participant.joinedAt).inMilliseconds)
    count(participant)
  }

  /// What its streams and transports have counted.
  mutating func count(_ participant: Participant) {
    for stream in participant.uplink.streams.values { ended(stream) }
    for transport in participant.transports { refused += UInt64(transport.refusalCount) }
  }

  mutating func roomEnded(after time: TimeDelta) { roomSeconds.observe(time.inSeconds) }

  mutating func note(_ score: ConnectionScore, lossPercent: Float, roundTrip: TimeDelta?) {
    scores.observe(Double(score.score))
    lossPercents.observe(Double(lossPercent))
    if let roundTrip { roundTripMilliseconds.observe(roundTrip.inMilliseconds) }
  }

  mutating func ended(_ stream: IncomingStream) {
    switch stream.role {
    case .media: received.add(stream.statistics)
    case .repair: repairsReceived.add(stream.statistics)
    }
    lost += UInt64(max(0, stream.statistics.cumulativeLost))
  }

  /// Takes in another worker's.
  mutating func add(_ other: WorkerTotals) {
    received.add(other.received)
    repairsReceived.add(other.repairsReceived)
    sent.add(other.sent)
    repairsSent.add(other.repairsSent)
    refused += other.refused
    lost += other.lost
    nacksReceived += other.nacksReceived
    nacksSent += other.nacksSent
    pictureLossesReceived += other.pictureLossesReceived
    pictureLossesSent += other.pictureLossesSent
    intraRequestsReceived += other.intraRequestsReceived
    joins += other.joins
    joinsRefused += other.joinsRefused
    connections += other.connections
    connectMilliseconds.add(other.connectMilliseconds)
    sessionMilliseconds.add(other.sessionMilliseconds)
    roomSeconds.add(other.roomSeconds)
    roundTripMilliseconds.add(other.roundTripMilliseconds)
    lossPercents.add(other.lossPercents)
    scores.add(other.scores)
  }
}

/// What a worker holds and what it has done.
public struct WorkerStatistics: Sendable, Equatable {
  /// Sound and pictures apart.
  public struct ByKind: Sendable, Equatable {
    public var audio = 0
    public var video = 0
    /// None.
    public init() {}

    mutating func count(_ kind: TrackKind) {
      switch kind {
      case .audio: audio += 1
      case .video: video += 1
      }
    }
  }

  public var rooms = 0
  public var participants = 0
  public var publishedTracks = ByKind()
  public var subscribedTracks = ByKind()
  public var totals: WorkerTotals

  init(_ totals: WorkerTotals, _ directory: Directory) {
    var totals = totals
    rooms = directory.rooms.count
    participants = directory.participants.count
    for participant in directory.participants {
      totals.count(participant)
      for track in participant.uplink.tracks where track.isAnnounced { publishedTracks.count(track.kind) }
      for downTrack in participant.downlink.downTracks {
        subscribedTracks.count(downTrack.track.kind)
        totals.sent.add(downTrack.statistics)
      }
    }
    self.totals = totals
  }

  /// Takes in another worker's.
  public mutating func add(_ other: WorkerStatistics) {
    rooms += other.rooms
    participants += other.participants
    publishedTracks.audio += other.publishedTracks.audio
    publishedTracks.video += other.publishedTracks.video
    subscribedTracks.audio += other.subscribedTracks.audio
    subscribedTracks.video += other.subscribedTracks.video
    totals.add(other.totals)
  }
}
