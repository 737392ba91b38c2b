extension ChatStory {
  /// A story as small as it gets by taking away what is not needed for it to fail: kinds of trouble one by one, then steps
  /// by halves and quarters (delta debugging), then devices and users, then waits.
  ///
  /// - Parameter fails: whether a story still shows what is looked for; it is lived for that.
  package func shrunk(tries: Int = 2_000, while fails: (ChatStory) -> Bool) -> ChatStory {
    var best = self
    var left = tries
    func attempt(_ change: (inout ChatStory) -> Void) -> Bool {
      var candidate = best
      change(&candidate)
      guard candidate != best, left > 0 else { return false }
      left -= 1
      guard fails(candidate) else { return false }
      best = candidate
      return true
    }
    _ = attempt { $0.loss = 0 }
    _ = attempt { $0.duplication = 0 }
    _ = attempt { $0.latency = 20...20 }
    _ = attempt { $0.asksConsent = false }
    for action in ChatStep.Action.allCases.sorted(by: { $0.fault != nil && $1.fault == nil }) {
      _ = attempt { $0.steps.removeAll { $0.action == action } }
    }
    var size = best.steps.count / 2
    while size > 0 {
      var place = 0
      var hasShrunk = false
      while place < best.steps.count {
        let end = min(place + size, best.steps.count)
        if attempt({ $0.steps.removeSubrange(place..<end) }) { hasShrunk = true } else { place = end }
      }
      if !hasShrunk || size > 1 { size /= 2 }
    }
    while attempt({ $0.devices = max($0.devices - 1, $0.users) }) {}
    while attempt({ ($0.users, $0.devices) = (max($0.users - 1, 1), max($0.devices - 1, 1)) }) {}
    for place in best.steps.indices { _ = attempt { $0.steps[place].wait = 0 } }
    return best
  }
}
