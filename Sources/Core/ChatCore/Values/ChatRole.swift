/// What a member may do in a group; the stronger is the greater (S0-105).
package enum ChatRole: UInt8, Hashable, Comparable, Sendable, CaseIterable {
  /// Sends, adds and leaves.
  case member = 1
  /// Removes members too, and renames.
  case admin = 2
  /// Gives roles too. Who made the group is one.
  case owner = 3

  package static func < (left: ChatRole, right: ChatRole) -> Bool { left.rawValue < right.rawValue }
}
