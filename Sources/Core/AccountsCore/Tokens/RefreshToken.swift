import PalbeBackendCore
import PalbeCrypto
import PalbeUnits
import PalbeWire

/// A refresh token as the client has it: session, generation, 32 random bytes, and a tag that shows that it was made here.
///
///     session 16 | generation 8 | secret 32 | tag 16
///
/// A store has its hash only. The tag is there to tell an old token of this session, which is theft, from one that somebody
/// made up, which is nothing. The secret of a successor lies in the store under a cover that its predecessor's owner can take
/// off: so who asks again, because the answer was lost, gets the same successor, and the server keeps it from itself.
struct RefreshToken {
  let session: SessionID
  let generation: Int64
  let secret: [UInt8]
  private let tag: [UInt8]

  static let byteCount = 72

  init(session: SessionID, generation: Int64, secret: [UInt8], key: borrowing SymmetricKey) {
    self.session = session
    self.generation = generation
    self.secret = secret
    tag = Self.tag(session, generation, secret, key)
  }

  /// Nil for what has another form.
  init?(_ text: String) {
    guard text.utf8.count == 96, let bytes = Base64.decode(text, alphabet: .url),
      bytes.count == Self.byteCount,
      let session = SessionID(bytes: Array(bytes[..<16]))
    else { return nil }
    self.session = session
    generation = Int64(bitPattern: bytes[16..<24].reduce(0) { $0 << 8 | UInt64($1) })
    secret = Array(bytes[24..<56])
    tag = Array(bytes[56...])
  }

  var text: String { Base64.encode(bytes, alphabet: .url, padded: false) }

  /// What a store keeps.
  var hash: [UInt8] { SHA256.hash(bytes) }

  func isMade(with key: borrowing SymmetricKey) -> Bool {
    ConstantTime.equal(tag.span, Self.tag(session, generation, secret, key).span)
  }

  /// A successor's secret covered, or uncovered: each token covers one secret only.
  func cover(_ successor: [UInt8]) -> [UInt8] {
    let mask = HMAC<SHA256>.authenticationCode(for: Array("palbe refresh successor".utf8), using: bytes)
    return zip(successor, mask).map { $0 ^ $1 }
  }

  private var bytes: [UInt8] { session.bytes + Self.bigEndian(generation) + secret + tag }

  private static func bigEndian(_ value: Int64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * Int64($0))) }
  }

  private static func tag(
    _ session: SessionID, _ generation: Int64, _ secret: [UInt8], _ key: borrowing SymmetricKey
  ) -> [UInt8] {
    let message = Array("palbe refresh token".utf8) + session.bytes + bigEndian(generation) + secret
    return Array(HMAC<SHA256>.authenticationCode(for: message.span, using: key).prefix(16))
  }
}
