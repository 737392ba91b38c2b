import PalbeUnits

/// One message of a chat, as its sender wrote it: what an MLS application message carries (docs/wire-format.md).
///
///     let plaintext = try Envelope(id: id, sentAt: now, content: .text(TextBody("hello"))).encoded()
///     let envelope = try Envelope.decoded(plaintext: plaintext.span)
///
/// Who sent it, and to which group, is what MLS authenticates; nothing in here says so again.
package struct Envelope: Equatable, Sendable {
  /// The version that this code writes, and the only one it reads.
  package static let currentVersion: UInt32 = 1

  /// Raised only by a change that an older reader must not pass over.
  package var version: UInt32
  /// Made by the sender. The server's `client_msg_id` is the same.
  package var id: ClientMessageID
  /// When it was composed, by the sender's clock; whole milliseconds on the wire.
  package var sentAt: WallTime
  /// What it says or does.
  package var content: Content
  /// Shown by who does not know the content (S0-141, S3-8).
  package var fallback: String?
  /// When it disappears; nil for never (S0-81).
  package var expiry: Expiry?

  /// A message of the current version.
  package init(
    id: ClientMessageID, sentAt: WallTime, content: Content, fallback: String? = nil, expiry: Expiry? = nil
  ) {
    version = Self.currentVersion
    (self.id, self.sentAt, self.content) = (id, sentAt, content)
    (self.fallback, self.expiry) = (fallback, expiry)
  }
}

/// How long a message stays.
package struct Expiry: Hashable, Sendable {
  /// From `start`; 1 at least.
  package var seconds: UInt32
  /// Where the time begins.
  package var start: ExpiryStart

  /// That many seconds from `start`.
  package init(seconds: UInt32, start: ExpiryStart = .send) { (self.seconds, self.start) = (seconds, start) }
}

/// Where a message's time begins (S0-82).
package enum ExpiryStart: UInt8, Hashable, Sendable, CaseIterable {
  /// When it was composed.
  case send = 1
  /// On each device, when it is read there first.
  case read = 2
}
