import PalbeCrypto

/// Why a file cannot be sealed, or a ciphertext is not opened.
package enum AttachmentError: Error, Equatable, Sendable {
  /// No file has that many bytes.
  case size(Int64)
  /// More bytes came than there are said to be.
  case moreBytes
  /// That many bytes did not come.
  case bytesMissing(Int64)
  /// The ciphertext is another one than the message names (S0-46).
  case hash
  /// Opening began before the ciphertext was checked.
  case notChecked
  /// The segment was changed, cut off, moved, or belongs to another blob.
  case segment(UInt32)
  /// The cipher failed.
  case crypto(CryptoError)
}
