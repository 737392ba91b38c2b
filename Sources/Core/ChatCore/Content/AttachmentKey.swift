import PalbeCrypto

/// A file's key. A box, because a message is copied and a secret must not be: all copies refer to one buffer, which is
/// wiped when the last lets go.
package final class AttachmentKey: Sendable {
  /// Bytes of every key (AES-256).
  package static let byteCount = 32

  let key: SymmetricKey

  /// Takes a key over; a descriptor with one of another length than `byteCount` is refused.
  package init(_ key: consuming SymmetricKey) { self.key = key }

  /// The key, to be used and wiped.
  package func copy() -> SymmetricKey { key.copy() }
}

extension AttachmentKey: Equatable {
  /// In time that does not depend on the bytes.
  package static func == (left: AttachmentKey, right: AttachmentKey) -> Bool {
    SymmetricKey.isEqual(left.key, right.key)
  }
}

extension AttachmentKey: CustomReflectable {
  /// Nothing: `dump` of a message must not show it.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
