import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP

/// The channels that LiveKit's clients have, by their labels; a channel of another name carries nothing here.
enum DataLabel: String, CaseIterable {
  case reliable = "_reliable"
  case lossy = "_lossy"
  case track = "_data_track"

  /// The channel as it is opened where its opening is ours; with its fixed number, for where nobody opens it.
  var channel: DataChannel {
    switch self {
    case .reliable: DataChannel(id: number, label: rawValue)
    case .lossy, .track:
      DataChannel(id: number, label: rawValue, isOrdered: false, reliability: .retransmits(0))
    }
  }

  private var number: UInt16 {
    let id: LiveKit.NegotiatedDataChannelID =
      switch self {
      case .reliable: .reliable
      case .lossy: .lossy
      case .track: .dataTrack
      }
    return UInt16(truncatingIfNeeded: id.rawValue)
  }
}

/// What a client's description says of its SCTP.
struct DataParameters {
  let port: UInt16
  /// Bytes of the largest message that the client takes.
  let messageLimit: Int

  /// Nil for a section without data channels.
  init?(_ section: MediaSection) {
    guard section.kind == .application, !section.isRejected, let port = section.sctpPort else { return nil }
    self.port = port
    // 65,536 where none is told, any size for 0 (RFC 8841 §6.1).
    let told = section.maxMessageSize ?? 65_536
    messageLimit = told == 0 ? .max : Int(clamping: told)
  }

  init?(_ description: SessionDescription) {
    let sections = description.media.lazy.compactMap { DataParameters($0) }
    guard let first = sections.first else { return nil }
    self = first
  }
}

/// Data channels over one transport. SCTP itself lives on another thread, which knows it by `peer`.
final class DataLink {
  /// Bytes of the largest message that a client is told to send.
  static let offeredMessageSize = 64_000
  /// With what we write into a message of that size: who sent it.
  static let messageSize = offeredMessageSize + 2_048

  let peer: SCTPPeer
  /// Bytes of the largest message that the client takes.
  let messageLimit: Int
  private var labels: [UInt16: DataLabel] = [:]
  private var ids: [DataLabel: UInt16] = [:]

  init(peer: SCTPPeer, messageLimit: Int) {
    self.peer = peer
    self.messageLimit = messageLimit
  }

  static func configuration(_ parameters: DataParameters) -> SCTPConfiguration {
    var configuration = SCTPConfiguration(maximumMessageSize: messageSize, port: parameters.port)
    configuration.backlogSize = 4 << 20
    configuration.unreliableLimit = 1 << 17
    return configuration
  }

  /// Of two channels with one label, the later one is used to send.
  func opened(_ channel: DataChannel) {
    guard let label = DataLabel(rawValue: channel.label) else { return }
    labels[channel.id] = label
    ids[label] = channel.id
  }

  func closed(_ id: UInt16) {
    guard let label = labels.removeValue(forKey: id), ids[label] == id else { return }
    ids[label] = labels.first { $0.value == label }?.key
  }

  func label(of id: UInt16) -> DataLabel? { labels[id] }

  /// Where a message with this label goes; nil while no such channel is open.
  func destination(_ label: DataLabel) -> SCTPDestination? {
    ids[label].map { SCTPDestination(peer: peer, channel: $0) }
  }
}
