/// Whether a chat is between two users or any number (2.3).
package enum ChatKind: UInt8, Hashable, Sendable, CaseIterable {
  case direct = 1
  case group = 2
}

/// Where a chat stands (2.3).
package enum ChatState: UInt8, Hashable, Sendable, CaseIterable {
  /// The server knows nothing of it (S0-12).
  case draft = 1
  case active = 2
  /// The user left.
  case left = 3
  /// Somebody removed the user.
  case removed = 4
}

/// What the user said about being written to (S3-31).
package enum ChatConsent: UInt8, Hashable, Sendable, CaseIterable {
  case unknown = 1
  case allowed = 2
  case denied = 3
}
