import PalbeMLSMessages

extension FuzzTarget {
  /// Any bytes as an MLSMessage or a ratchet tree: decodes canonically or throws.
  static let mlsMessage = FuzzTarget(name: "mls-message") { (bytes: [UInt8]) in
    if let message = try? MLSMessage(decoding: bytes) { precondition(message.encoded() == bytes) }
    if let tree = try? RatchetTreeExtension(decoding: bytes) { precondition(tree.encoded() == bytes) }
  }
}
