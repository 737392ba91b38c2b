import PalbeUnits
import PalbeWire

/// The messages of the Data Channel Establishment Protocol (RFC 8832 §5).
public enum DataChannelControl: Equatable, Sendable {
  /// Bytes of a label or a subprotocol that are taken.
  public static let nameLimit = 1_024
  /// Bytes of the largest message of ours.
  static let messageLimit = 12 + 2 * nameLimit

  /// DATA_CHANNEL_OPEN; the channel's number is the stream's.
  case open(DataChannel)
  /// DATA_CHANNEL_ACK
  case acknowledgement

  private static let openType: UInt8 = 3
  private static let acknowledgementType: UInt8 = 2

  /// Reads a message that came on stream `id`. Names that are no UTF-8 are repaired.
  public init(_ bytes: Span<UInt8>, id: UInt16) throws(WireError) {
    var reader = ByteReader(bytes)
    let type = try reader.uint8()
    switch type {
    case Self.acknowledgementType:
      self = .acknowledgement
    case Self.openType:
      let channelType = try reader.uint8()
      let priority = try reader.uint16()
      let parameter = try reader.uint32()
      let labelCount = Int(try reader.uint16())
      let protocolCount = Int(try reader.uint16())
      guard labelCount <= Self.nameLimit else {
        throw .tooLong(field: "label", length: labelCount, limit: Self.nameLimit)
      }
      guard protocolCount <= Self.nameLimit else {
        throw .tooLong(field: "protocol", length: protocolCount, limit: Self.nameLimit)
      }
      let reliability: ChannelReliability
      switch channelType & 0x7f {
      case 0: reliability = .reliable
      case 1: reliability = .retransmits(parameter)
      case 2: reliability = .lifetime(milliseconds: parameter)
      default: throw .invalid(field: "channel type", value: UInt64(channelType))
      }
      let label = String(decoding: try reader.array(labelCount), as: UTF8.self)
      let subprotocol = String(decoding: try reader.array(protocolCount), as: UTF8.self)
      try reader.finish()
      self = .open(
        DataChannel(
          id: id, label: label, subprotocol: subprotocol, isOrdered: channelType & 0x80 == 0,
          reliability: reliability, priority: priority))
    default:
      throw .invalid(field: "message type", value: UInt64(type))
    }
  }

  /// The message's bytes; names must be within the limit.
  public var encoded: [UInt8] {
    guard case .open(let channel) = self else { return [Self.acknowledgementType] }
    var writer = ByteWriter(capacity: 64)
    writer.uint8(Self.openType)
    let order: UInt8 = channel.isOrdered ? 0 : 0x80
    switch channel.reliability {
    case .reliable:
      writer.uint8(order)
      writer.uint16(channel.priority)
      writer.uint32(0)
    case .retransmits(let count):
      writer.uint8(order | 1)
      writer.uint16(channel.priority)
      writer.uint32(count)
    case .lifetime(let milliseconds):
      writer.uint8(order | 2)
      writer.uint16(channel.priority)
      writer.uint32(milliseconds)
    }
    writer.uint16(UInt16(truncatingIfNeeded: channel.label.utf8.count))
    writer.uint16(UInt16(truncatingIfNeeded: channel.subprotocol.utf8.count))
    writer.append(utf8: channel.label)
    writer.append(utf8: channel.subprotocol)
    return writer.bytes
  }
}

/// SCTP's payload protocol identifiers of WebRTC (RFC 8831 §8).
enum PayloadProtocol {
  static let control: UInt32 = 50
  static let text: UInt32 = 51
  static let binary: UInt32 = 53
  static let emptyText: UInt32 = 56
  static let emptyBinary: UInt32 = 57
}
