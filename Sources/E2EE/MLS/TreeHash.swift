import PalbeMLSMessages
import PalbeWire

/// The hash inputs of RFC 9420 §7.8 and §7.9.
enum TreeHash {
  /// `TreeHashInput` of a leaf.
  static func leaf(_ index: LeafIndex, _ node: LeafNode?, crypto: SuiteCrypto) -> [UInt8] {
    var input = ByteWriter(capacity: 320)
    input.uint8(1)
    index.encode(into: &input)
    input.optional(node)
    return crypto.hash(input.bytes)
  }

  /// `TreeHashInput` of a parent.
  static func parent(
    _ node: ParentNode?, left: [UInt8], right: [UInt8], crypto: SuiteCrypto
  ) -> [UInt8] {
    var input = ByteWriter(capacity: 192)
    input.uint8(2)
    input.optional(node)
    input.opaque(left)
    input.opaque(right)
    return crypto.hash(input.bytes)
  }

  /// `ParentHashInput`.
  static func parentHash(
    _ node: ParentNode, originalSiblingTreeHash: [UInt8], crypto: SuiteCrypto
  ) -> [UInt8] {
    var input = ByteWriter(capacity: 128)
    input.opaque(node.encryptionKey)
    input.opaque(node.parentHash)
    input.opaque(originalSiblingTreeHash)
    return crypto.hash(input.bytes)
  }
}
