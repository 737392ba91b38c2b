import PalbeUnits

/// All that a history is lived from: who there is, what the network is like, and the steps. Two lives of one story are the
/// same, step for step.
package struct ChatStory: Hashable, Sendable {
  /// What can be switched off on its own.
  package enum Fault: String, CaseIterable, Sendable {
    case partitions, connections, crashes, clocks
  }

  package var seed: UInt64
  package var users = 3
  /// At the beginning; steps add more.
  package var devices = 5
  /// In thousandths of requests and answers.
  package var loss = 60
  package var duplication = 30
  /// Milliseconds of a way; requests and answers overtake each other within it.
  package var latency = 5...120
  /// New chats of strangers wait for the user's word.
  package var asksConsent = false
  package var steps: [ChatStep] = []

  package init(seed: UInt64) { self.seed = seed }

  /// A story made up from a seed.
  /// - Parameter faults: which may be in it at all.
  /// - Parameter isRare: whether groups are founded anew too, and bytes come again.
  package static func make(
    seed: UInt64, faults: Set<Fault> = Set(Fault.allCases), isRare: Bool = false
  ) -> ChatStory {
    var random = RandomSource(seed: seed &* 0x9e37_79b9 &+ 0x5157)
    func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
    var story = ChatStory(seed: seed)
    story.users = draw(2...4)
    story.devices = draw(story.users...(story.users + 2))
    story.loss = [0, 20, 60, 150][draw(0...3)]
    story.duplication = [0, 30, 100][draw(0...2)]
    story.latency = [5...40, 5...120, 20...900][draw(0...2)]
    story.asksConsent = draw(0...3) == 0
    // Most histories have few kinds of trouble: what comes of one alone shows better.
    let present = Fault.allCases.filter { _ in draw(0...2) > 0 }.filter(faults.contains)
    let actions = ChatStep.Action.allCases.filter { action in
      // What a reset's maker has not fetched of the group before is gone with that.
      action == .reset || action == .replay ? isRare : action.fault.map(present.contains) ?? true
    }
    let total = actions.reduce(0) { $0 + $1.weight }
    let count = [20, 40, 60, 100][draw(0...3)]
    for _ in 0..<count {
      var rest = draw(0...(total - 1))
      let action =
        actions.first {
          rest -= $0.weight
          return rest < 0
        } ?? .say
      story.steps.append(
        ChatStep(
          action, phone: draw(0...999), first: draw(0...9_999), second: draw(0...9_999),
          wait: draw(0...3) == 0 ? draw(0...5_000) : draw(0...400), seed: random.next()))
    }
    return story
  }

  // MARK: Files

  /// The story as a replay file.
  package var text: String {
    let head =
      "story \(seed) \(users) \(devices) \(loss) \(duplication) \(latency.lowerBound) \(latency.upperBound) "
      + "\(asksConsent ? 1 : 0)"
    return ([head] + steps.map(\.line)).joined(separator: "\n") + "\n"
  }

  /// From a replay file; nil for what is none.
  package init?(text: String) {
    let lines = text.split(separator: "\n")
    guard let head = lines.first?.split(separator: " "), head.count == 9, head[0] == "story",
      let seed = UInt64(head[1])
    else { return nil }
    let numbers = head.dropFirst(2).compactMap { Int($0) }
    guard numbers.count == 7, (1...16).contains(numbers[0]), (numbers[0]...32).contains(numbers[1]),
      (0...1_000).contains(numbers[2]), (0...1_000).contains(numbers[3]), numbers[4] >= 0,
      numbers[4] <= numbers[5]
    else { return nil }
    self.init(seed: seed)
    (users, devices, loss, duplication) = (numbers[0], numbers[1], numbers[2], numbers[3])
    latency = numbers[4]...numbers[5]
    asksConsent = numbers[6] != 0
    for line in lines.dropFirst() {
      guard let step = ChatStep(line: String(line)) else { return nil }
      steps.append(step)
    }
  }
}
