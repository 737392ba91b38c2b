/// What members of a group know about it together: its name and its timer (S0-30).
package struct GroupProfile: Equatable, Sendable {
  /// The group's name; nil for none.
  package var name: String?
  /// What made it so.
  package var nameVersion: ProfileVersion
  /// After what messages disappear by default; nil for never.
  package var timer: Expiry?
  /// What made it so.
  package var timerVersion: ProfileVersion

  /// A profile; without versions, that of a group that was just made.
  package init(
    name: String? = nil, nameVersion: ProfileVersion = .initial, timer: Expiry? = nil,
    timerVersion: ProfileVersion = .initial
  ) {
    (self.name, self.nameVersion) = (name, nameVersion)
    (self.timer, self.timerVersion) = (timer, timerVersion)
  }
}

/// Which control set a value: of two versions the greater holds (section 3 #28).
package struct ProfileVersion: Hashable, Comparable, Sendable {
  /// The epoch that the control was sent in.
  package var epoch: UInt64
  /// Its place in the server's order.
  package var seq: Int64
  /// The control itself, to be acknowledged; nil for what the group was made with.
  package var control: MessageRef?

  /// The version of what a group was made with.
  package static let initial = ProfileVersion(epoch: 0, seq: 0)

  /// The version that a control has.
  package init(epoch: UInt64, seq: Int64, control: MessageRef? = nil) {
    (self.epoch, self.seq, self.control) = (epoch, seq, control)
  }

  /// By place; the server's order is one, so the epoch never disagrees.
  package static func < (left: ProfileVersion, right: ProfileVersion) -> Bool { left.seq < right.seq }
}
