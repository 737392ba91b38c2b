/// Whether a chat wakes this user's devices (S0-87).
package enum NotifyScope: UInt8, Hashable, Sendable {
  case all = 1
  case none = 2
}
