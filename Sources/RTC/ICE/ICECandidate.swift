import PalbeUnits
import PalbeWire

/// A transport address that a peer can perhaps be reached at (RFC 8445 §5.1, RFC 8839 §5.1).
public struct ICECandidate: Hashable, Sendable {
  /// How the address was found.
  public enum Kind: String, Sendable {
    /// An address of an interface.
    case host
    /// What a STUN server saw.
    case serverReflexive = "srflx"
    /// What the peer saw in a check.
    case peerReflexive = "prflx"
    /// An address on a TURN server.
    case relayed = "relay"

    /// RFC 8445 §5.1.2.2.
    var typePreference: UInt32 {
      switch self {
      case .host: 126
      case .peerReflexive: 110
      case .serverReflexive: 100
      case .relayed: 0
      }
    }
  }

  /// The transport; our agents pair UDP alone.
  public enum Transport: String, Sendable {
    /// UDP.
    case udp
    /// TCP (RFC 6544), read so that it can be skipped.
    case tcp
  }

  /// 1 to 32 characters; equal for candidates of one kind, base and server.
  public var foundation: String
  /// 1 to 256; 1 is RTP, and everything when RTCP is multiplexed.
  public var component: UInt16
  /// UDP or TCP.
  public var transport: Transport
  /// Higher is better.
  public var priority: UInt32
  /// Where to send to.
  public var address: SocketAddress
  /// How the address was found.
  public var kind: Kind
  /// The base of a reflexive or relayed candidate, where it is told.
  public var relatedAddress: SocketAddress?
  /// `active`, `passive` or `so`, of a TCP candidate.
  public var tcpType: String?
  /// The generation of credentials it belongs to (`ufrag` extension), where it is told.
  public var usernameFragment: String?

  /// A UDP candidate; priority and foundation are computed (RFC 8445 §5.1.2.1 and §5.1.1.3).
  ///
  /// - Parameter localPreference: 0 to 65,535, higher for the interface that is liked better.
  public init(
    _ kind: Kind, _ address: SocketAddress, localPreference: UInt16 = .max,
    relatedAddress: SocketAddress? = nil
  ) {
    let base = relatedAddress ?? address
    let name = [UInt8](kind.rawValue.utf8) + base.addressBytes
    foundation = String(CRC32.checksum(name.span, 0..<name.count))
    component = 1
    transport = .udp
    priority = Self.priority(kind, localPreference: localPreference)
    self.address = address
    self.kind = kind
    self.relatedAddress = relatedAddress
  }

  /// The priority of component 1 (RFC 8445 §5.1.2.1).
  public static func priority(_ kind: Kind, localPreference: UInt16) -> UInt32 {
    kind.typePreference << 24 | UInt32(localPreference) << 8 | 255
  }
}
