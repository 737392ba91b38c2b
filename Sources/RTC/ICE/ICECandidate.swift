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

  /// UDP or TCP (RFC 6544). Our full agent pairs UDP alone; the lite one takes either.
  public typealias Transport = SocketAddress.Transport

  /// 1 to 32 characters; equal for candidates of one kind, base and server.
  public var foundation: String
  /// 1 to 256; 1 is RTP, and everything when RTCP is multiplexed.
  public var component: UInt16
  /// Higher is better.
  public var priority: UInt32
  /// Where to send to, or to connect to.
  public var address: SocketAddress
  /// UDP or TCP.
  public var transport: Transport {
    get { address.transport }
    set { address.transport = newValue }
  }
  /// How the address was found.
  public var kind: Kind
  /// The base of a reflexive or relayed candidate, where it is told.
  public var relatedAddress: SocketAddress?
  /// `active`, `passive` or `so`, of a TCP candidate.
  public var tcpType: String?
  /// The generation of credentials it belongs to (`ufrag` extension), where it is told.
  public var usernameFragment: String?

  /// A candidate with priority and foundation computed (RFC 8445 §5.1.2.1 and §5.1.1.3); a TCP one is passive.
  ///
  /// - Parameter localPreference: 0 to 65,535, higher for the interface that is liked better.
  public init(
    _ kind: Kind, _ address: SocketAddress, localPreference: UInt16 = .max,
    relatedAddress: SocketAddress? = nil
  ) {
    let base = relatedAddress ?? address
    let name = [UInt8](kind.rawValue.utf8) + base.addressBytes + (address.transport == .tcp ? [6] : [])
    foundation = String(CRC32.checksum(name.span, 0..<name.count))
    component = 1
    self.address = address
    self.kind = kind
    self.relatedAddress = relatedAddress
    if address.transport == .tcp {
      tcpType = "passive"
      priority = Self.passivePriority(kind, localPreference: localPreference)
    } else {
      priority = Self.priority(kind, localPreference: localPreference)
    }
  }

  /// The priority of component 1 (RFC 8445 §5.1.2.1).
  public static func priority(_ kind: Kind, localPreference: UInt16) -> UInt32 {
    kind.typePreference << 24 | UInt32(localPreference) << 8 | 255
  }

  /// That of a passive TCP candidate: below every UDP one but the relayed, and of its 16 bits of local preference
  /// the first 3 are the direction's, 4 for passive of a host and 2 otherwise (RFC 6544 §4.2).
  static func passivePriority(_ kind: Kind, localPreference: UInt16) -> UInt32 {
    let type = kind.typePreference - min(kind.typePreference, 27)
    let direction: UInt32 = kind == .host ? 4 : 2
    return type << 24 | (direction << 13 | UInt32(localPreference) >> 3) << 8 | 255
  }
}
