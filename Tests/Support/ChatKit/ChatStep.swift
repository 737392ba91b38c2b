/// One thing that happens in a history, as a value: whom and what it is about are numbers, taken modulo what there is when
/// its turn comes, so that any part of a list of steps can be lived.
package struct ChatStep: Hashable, Sendable {
  /// What happens. The raw value stands in replay files.
  package enum Action: String, CaseIterable, Sendable {
    // What a user says.
    case say, mention, expiring, file, custom, refused, reply, react, unreact, edit, delete
    /// An edit or a deletion of what somebody else said: nobody may follow it.
    case meddle
    /// The bytes of a message once more, under another id: nobody shows it twice.
    case replay
    case hide, retry, cancel
    // What a user does to chats.
    case direct, group, rename, timer, add, remove, role, leave, reset, read, consent, scope, typing
    // Devices.
    case device, revoke
    // What goes wrong.
    case reach, split, unite, socket, outage, restart, kill, die, trap, clock
  }

  package var action: Action
  /// Which device.
  package var phone: Int
  /// What else it takes.
  package var first: Int
  package var second: Int
  /// Milliseconds before it.
  package var wait: Int
  /// What the network does after it is drawn from this, so that a step taken away changes little for the others.
  package var seed: UInt64

  package init(_ action: Action, phone: Int, first: Int, second: Int, wait: Int, seed: UInt64) {
    (self.action, self.phone, self.first, self.second) = (action, phone, first, second)
    (self.wait, self.seed) = (wait, seed)
  }

  /// A line of a replay file.
  package var line: String { "\(action.rawValue) \(phone) \(first) \(second) \(wait) \(seed)" }

  /// From a line; nil for what is none.
  package init?(line: String) {
    let words = line.split(separator: " ")
    guard words.count == 6, let action = Action(rawValue: String(words[0])), let phone = Int(words[1]),
      let first = Int(words[2]), let second = Int(words[3]), let wait = Int(words[4]),
      let seed = UInt64(words[5]), min(phone, first, second, wait) >= 0
    else { return nil }
    self.init(action, phone: phone, first: first, second: second, wait: wait, seed: seed)
  }
}

extension ChatStep.Action {
  /// How often it is drawn, among all. Of what goes wrong none comes where a history has not switched it on.
  var weight: Int {
    switch self {
    case .say: 150
    case .react, .reply, .edit, .read: 45
    case .mention, .delete, .expiring: 30
    case .file, .custom, .refused, .unreact, .meddle, .hide, .retry: 15
    case .cancel, .consent, .scope, .typing, .replay: 8
    case .group, .direct: 35
    case .add, .role: 45
    case .remove: 30
    case .rename: 25
    case .timer: 18
    case .leave: 14
    case .reset: 10
    case .device: 12
    case .revoke: 5
    case .reach: 35
    case .split: 8
    case .unite: 8
    case .socket: 25
    case .outage: 6
    case .restart: 25
    case .kill: 6
    case .die: 25
    case .trap: 40
    case .clock: 8
    }
  }

  /// Which switch of a history it belongs to; nil for what users do.
  var fault: ChatStory.Fault? {
    switch self {
    case .reach, .split, .unite: .partitions
    case .socket, .outage: .connections
    case .restart, .kill, .die, .trap: .crashes
    case .clock: .clocks
    default: nil
    }
  }
}
