import PalbeLiveKit
import PalbeSFUCore

/// How many rooms and participants there are.
package struct Census: Sendable, Equatable {
  package var rooms = 0
  package var participants = 0

  /// Nobody.
  package init() {}
}

extension SFUServer {
  /// Counts what is there, by asking every worker.
  package func census() async -> Census {
    var census = Census()
    for inbox in inboxes {
      let answer = await withCheckedContinuation { continuation in
        inbox.post(.command(.list(names: [])) { continuation.resume(returning: $0) })
      }
      guard case .rooms(let rooms) = answer else { continue }
      census.rooms += rooms.count
      census.participants += rooms.reduce(0) { $0 + Int($1.numParticipants) }
    }
    return census
  }
}
