/// Keeps small secrets of this device: tokens, the keys that stores are sealed with. On Apple systems this is the
/// Keychain's place, on Linux `FileKeyVault`'s.
///
/// Calls block for the time of a small file; they may come from any thread and any process of the app.
package protocol KeyVault: Sendable {
  /// The secret of that name; nil when there is none. Damage is an error, never nil.
  func read(_ name: String) throws(StoreFault) -> [UInt8]?
  /// Replaces the secret: after a crash at any moment it is the old or the new one, whole.
  func write(_ secret: [UInt8], as name: String) throws(StoreFault)
  /// Without effect when there is none.
  func remove(_ name: String) throws(StoreFault)
  /// The names of all secrets, sorted.
  func names() throws(StoreFault) -> [String]
}

extension KeyVault {
  /// Copies what `other` has and this one lacks, reads each copy back, and only then removes it from `other`
  /// (S0-116). Repeating it is harmless; what cannot be copied stays where it is.
  /// - Returns: whether everything is here now.
  package func adopt(from other: some KeyVault) -> Bool {
    guard let names = try? other.names() else { return false }
    var isComplete = true
    for name in names {
      do throws(StoreFault) {
        guard let secret = try other.read(name) else { continue }
        if try read(name) == nil { try write(secret, as: name) }
        guard try read(name) != nil else { throw .corrupted(name) }
        try other.remove(name)
      } catch {
        isComplete = false
      }
    }
    return isComplete
  }
}
