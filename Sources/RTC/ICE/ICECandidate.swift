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

    /// That over TCP.
    var streamTypePreference: UInt32 { typePreference - min(typePreference, 27) }
  }

  /// UDP or TCP (RFC 6544). Our full agent opens connections; the lite one takes them.
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
      tcpType = Self.passive
      // Of a host that is 4, otherwise 2.
      priority = Self.streamPriority(kind, direction: kind == .host ? 4 : 2, localPreference: localPreference)
    } else {
      priority = Self.priority(kind, localPreference: localPreference)
    }
  }

  /// The priority of component 1 (RFC 8445 §5.1.2.1).
  public static func priority(_ kind: Kind, localPreference: UInt16) -> UInt32 {
    kind.typePreference << 24 | UInt32(localPreference) << 8 | 255
  }

  /// That of a TCP candidate: below every UDP one but the relayed, and of its 16 bits of local preference the first 3
  /// are the direction's (RFC 6544 §4.2).
  static func streamPriority(_ kind: Kind, direction: UInt32, localPreference: UInt16) -> UInt32 {
    kind.streamTypePreference << 24 | (direction << 13 | UInt32(localPreference) >> 3) << 8 | 255
  }

  static let passive = "passive"
  static let active = "active"

  func isUDP(orTCP type: String) -> Bool { transport == .udp || tcpType == type }

  /// Who connects from this address; peers cannot connect to it, so its port is 9, discard (RFC 6544 §4.5).
  public static func active(_ address: SocketAddress, localPreference: UInt16 = .max) -> ICECandidate {
    var base = address.overTCP
    base.port = 9
    var candidate = ICECandidate(.host, base)
    candidate.tcpType = active
    candidate.priority = streamPriority(.host, direction: 6, localPreference: localPreference)
    return candidate
  }
}
