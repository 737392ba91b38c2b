import PalbeUnits

/// A STUN message with the attributes that ICE uses (RFC 8489, RFC 8445 §16).
///
///     header      2 bits 0 · 14 bits class and method · 16 bits length · magic cookie · 96 bits transaction id
///     attributes  16 bits type · 16 bits length · value padded to 4 bytes, …, MESSAGE-INTEGRITY, FINGERPRINT
///
/// Of an attribute that appears twice the first one counts, and nothing after MESSAGE-INTEGRITY counts but FINGERPRINT.
public struct STUNMessage: Equatable, Sendable {
  /// What kind of message it is (RFC 8489 §5).
  public enum Class: UInt8, Sendable, BitwiseCopyable { case request, indication, success, failure }

  /// The sender's ICE role and its tie-breaker (RFC 8445 §16.1).
  public enum Role: Equatable, Sendable, BitwiseCopyable {
    /// ICE-CONTROLLING.
    case controlling(tieBreaker: UInt64)
    /// ICE-CONTROLLED.
    case controlled(tieBreaker: UInt64)
  }

  /// An ERROR-CODE, 300 to 699, with its reason phrase.
  public struct ErrorCode: Equatable, Sendable {
    /// The number, such as 487.
    public var code: UInt16
    /// The phrase for people, at most 763 bytes.
    public var reason: String

    /// From its number and phrase.
    public init(_ code: UInt16, _ reason: String = "") {
      self.code = code
      self.reason = reason
    }

    /// 400: the request lacks what it must have.
    public static let badRequest = ErrorCode(400, "Bad Request")
    /// 401: MESSAGE-INTEGRITY does not match.
    public static let unauthenticated = ErrorCode(401, "Unauthenticated")
    /// 420: a comprehension-required attribute is unknown.
    public static let unknownAttribute = ErrorCode(420, "Unknown Attribute")
    /// 487: both agents claim the same role (RFC 8445 §7.3.1.1).
    public static let roleConflict = ErrorCode(487, "Role Conflict")
  }

  /// The method Binding, the only one that ICE uses.
  public static let binding: UInt16 = 1
  /// Bytes of a header.
  public static let headerByteCount = 20
  /// The third to sixth bit of every message.
  static let magicCookie: UInt32 = 0x2112_a442
  /// Attributes that are read before a message is refused.
  static let attributeLimit = 32
  /// Bytes of a message that is read; what a socket buffer of ours holds.
  static let byteLimit = 2_048

  /// Request, indication, success or failure.
  public var messageClass: Class
  /// At most 255, as RFC 7983 leaves the rest of the twelve bits to others; `binding` is 1.
  public var method: UInt16
  /// Ties a response to its request.
  public var transactionID: STUNTransactionID

  /// USERNAME, at most 513 bytes.
  public var username: [UInt8]?
  /// PRIORITY that a peer-reflexive candidate learned from this check would have.
  public var priority: UInt32?
  /// USE-CANDIDATE: the controlling agent nominates the pair.
  public var useCandidate = false
  /// ICE-CONTROLLING or ICE-CONTROLLED.
  public var role: Role?
  /// XOR-MAPPED-ADDRESS, or MAPPED-ADDRESS where only that is there.
  public var mappedAddress: SocketAddress?
  /// ERROR-CODE of a failure.
  public var errorCode: ErrorCode?
  /// UNKNOWN-ATTRIBUTES of a 420.
  public var unknownAttributes: [UInt16] = []
  /// SOFTWARE, at most 763 bytes.
  public var software: String?
  /// Comprehension-required attributes that the parser met and does not know; never written.
  public internal(set) var notUnderstood: [UInt16] = []
  /// Where MESSAGE-INTEGRITY starts in the parsed datagram.
  public internal(set) var integrityOffset: Int?
  /// True when the parsed datagram ended with a FINGERPRINT that matches.
  public internal(set) var hasFingerprint = false

  /// A message without attributes.
  public init(_ messageClass: Class, method: UInt16 = binding, transactionID: STUNTransactionID) {
    self.messageClass = messageClass
    self.method = method
    self.transactionID = transactionID
  }
}

/// Attribute types (RFC 8489 §18.3, RFC 8445 §20.2). From 0x8000 on they may be ignored when unknown.
enum STUNAttribute {
  static let mappedAddress: UInt16 = 0x0001
  static let username: UInt16 = 0x0006
  static let messageIntegrity: UInt16 = 0x0008
  static let errorCode: UInt16 = 0x0009
  static let unknownAttributes: UInt16 = 0x000a
  static let realm: UInt16 = 0x0014
  static let nonce: UInt16 = 0x0015
  static let messageIntegritySHA256: UInt16 = 0x001c
  static let xorMappedAddress: UInt16 = 0x0020
  static let priority: UInt16 = 0x0024
  static let useCandidate: UInt16 = 0x0025
  static let software: UInt16 = 0x8022
  static let fingerprint: UInt16 = 0x8028
  static let iceControlled: UInt16 = 0x8029
  static let iceControlling: UInt16 = 0x802a
}
