import PalbeMLSMessages
import PalbeWire

/// What the server reads of an MLS message: the clear fields at its beginning (RFC 9420 §6), and nothing behind them.
struct MessageHeader: Equatable {
  var format: WireFormat
  /// Nil in a welcome.
  var group: MLSGroupID?
  var epoch: Epoch?
  /// Nil in what is no message to a group.
  var content: ContentType?

  /// Reads the beginning; the rest may be anything.
  /// - Parameter flaw: what it is not when it cannot be read.
  init(_ bytes: [UInt8], or flaw: InvalidRequest.Flaw) throws(BackendFailure) {
    do throws(WireError) { try self.init(parsing: bytes) } catch { throw .invalidRequest(.because(flaw)) }
  }

  private init(parsing bytes: [UInt8]) throws(WireError) {
    var reader = ByteReader(bytes.span)
    let version = try ProtocolVersion(from: &reader)
    guard version == .mls10 else { throw .invalid(field: "version", value: UInt64(version.rawValue)) }
    format = try WireFormat(from: &reader)
    switch format {
    case .publicMessage:
      group = MLSGroupID(try reader.opaque())
      epoch = try reader.uint64()
      _ = try Sender(from: &reader)
      _ = try reader.opaque()
      content = try ContentType(from: &reader)
    case .privateMessage:
      group = MLSGroupID(try reader.opaque())
      epoch = try reader.uint64()
      content = try ContentType(from: &reader)
    case .groupInfo:
      _ = try ProtocolVersion(from: &reader)
      _ = try CipherSuite(from: &reader)
      group = MLSGroupID(try reader.opaque())
      epoch = try reader.uint64()
    case .welcome: break
    case .keyPackage: throw .invalid(field: "wire_format", value: 5)
    }
  }

  /// Throws unless `bytes` is a commit of a group's epoch.
  static func checkCommit(_ bytes: [UInt8], of group: MLSGroupID, epoch: Epoch) throws(BackendFailure) {
    let header = try MessageHeader(bytes, or: .commitForm)
    guard header.content == .commit, header.group == group, header.epoch == epoch else {
      throw .invalidRequest(.because(.commitForm))
    }
  }

  /// Throws unless `bytes` is a group info of a group's epoch.
  static func checkGroupInfo(_ bytes: [UInt8], of group: MLSGroupID, epoch: Epoch) throws(BackendFailure) {
    let header = try MessageHeader(bytes, or: .groupInfoForm)
    guard header.format == .groupInfo, header.group == group, header.epoch == epoch else {
      throw .invalidRequest(.because(.groupInfoForm))
    }
  }

  /// Throws unless `bytes` is a welcome.
  static func checkWelcome(_ bytes: [UInt8]) throws(BackendFailure) {
    guard try MessageHeader(bytes, or: .welcomeForm).format == .welcome else {
      throw .invalidRequest(.because(.welcomeForm))
    }
  }
}
