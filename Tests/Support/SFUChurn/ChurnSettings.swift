import PalbeCallCore

/// How a crowd comes and goes.
public struct ChurnSettings: Sendable {
  /// Draws who comes and goes when; the network and the threads draw too, so a run does not repeat exactly.
  public var seed: UInt64 = 1
  /// Places in the crowd; most of them are taken most of the time.
  public var participants = 200
  public var rooms = 20
  public var workers = 2
  /// A round before the run; there are as many as it takes until everything has its size.
  public var warmUpSeconds = 20
  /// And no more than these.
  public static let warmUpLimit = 6
  public var seconds = 120

  /// 200 participants for two minutes.
  public init() {}
}

/// What a process holds when nobody is there.
public struct Footprint: Sendable {
  /// Bytes that were allocated and not given back.
  public var liveBytes: Int
  /// Bytes of memory that the process occupies.
  public var residentBytes: Int
  /// Open descriptors.
  public var descriptors: Int
}

/// What happened.
public struct ChurnReport: Sendable {
  public var warmUpRounds = 0
  public var joins = 0
  public var connections = 0
  /// Who left without being told to, by a word, by silence, or by another of the same name; each with the reason.
  public private(set) var unexpectedEnds: [String: Int] = [:]
  /// The longest time between two looks at every client: what is above a second are the clients' troubles, not the server's.
  public var longestTurnMilliseconds = 0.0
  public var peak = 0
  public var packets = 0
  /// Milliseconds from the join request to the transport, median.
  public var connectMilliseconds = 0.0
  public var before: Footprint
  public var after: Footprint
  /// Participants and rooms that were still there in the end.
  public var stuckParticipants = 0
  public var stuckRooms = 0

  /// What is not as it should be, each a sentence.
  public var complaints: [String] {
    var found: [String] = []
    if stuckParticipants > 0 { found.append("\(stuckParticipants) participants are stuck") }
    if stuckRooms > 0 { found.append("\(stuckRooms) rooms are stuck") }
    if after.descriptors > before.descriptors {
      found.append("\(after.descriptors - before.descriptors) descriptors are left open")
    }
    if growth(\.liveBytes) > 0.02 { found.append("live memory grew by more than 2 %") }
    if growth(\.residentBytes) > 0.10 { found.append("resident memory grew by more than 10 %") }
    if connections * 10 < joins * 8 { found.append("fewer than 80 % of those who joined were connected") }
    for (reason, count) in unexpectedEnds.sorted(by: { $0.key < $1.key }) {
      found.append("\(count) sessions ended by themselves: \(reason)")
    }
    return found
  }

  mutating func note(_ reason: CallEndReason, isConnected: Bool) {
    unexpectedEnds["\(reason), \(isConnected ? "after" : "before") it was connected", default: 0] += 1
  }

  /// As a part of what was there.
  public func growth(_ figure: KeyPath<Footprint, Int>) -> Double {
    Double(after[keyPath: figure] - before[keyPath: figure]) / Double(max(1, before[keyPath: figure]))
  }
}
