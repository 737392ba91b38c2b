import Foundation
import PalbeMLS
import PalbeUnits
import PalbeWire

/// Where a session keeps its clients and groups: a file that was named, else one that goes with the session.
final class SessionFiles {
  private let path: String?
  private let random: RandomSource
  private var database: SQLiteMLSDatabase?
  private var folder: URL?

  init(path: String?, random: RandomSource) {
    self.path = path
    self.random = random
  }

  var outlivesSession: Bool { path != nil }

  deinit {
    database = nil
    if let folder { try? FileManager.default.removeItem(at: folder) }
  }

  /// Opens the file when it is first needed.
  func storage(of client: String) throws -> SQLiteMLSStorage {
    if let database { return database.storage(of: client) }
    let opened: SQLiteMLSDatabase
    if let path {
      opened = try SQLiteMLSDatabase(path: path, random: random)
    } else {
      let new = FileManager.default.temporaryDirectory
        .appendingPathComponent("mls-interop-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: new, withIntermediateDirectories: true)
      folder = new
      // Nobody reads it after a crash of the machine.
      opened = try SQLiteMLSDatabase(
        path: new.appendingPathComponent("state.db").path, isDurable: false, random: random)
    }
    database = opened
    return opened.storage(of: client)
  }
}

extension MLSRecordKey {
  /// How a client behaves, which the engine leaves to the application.
  static let interopConfiguration = MLSRecordKey.application(Array("interop".utf8), in: nil)
}

extension MLSConfiguration {
  /// What `create_client` can choose.
  var record: MLSRecord {
    let bytes: [UInt8] = [
      ratchetTreeInWelcome ? 1 : 0, sendsGREASE ? 1 : 0, handshakeFormat == .publicMessage ? 1 : 0,
    ]
    return MLSRecord(copying: bytes.span)
  }

  init(_ record: MLSRecord) {
    self.init()
    record.withSpan { bytes in
      guard bytes.count == 3 else { return }
      ratchetTreeInWelcome = bytes[0] == 1
      sendsGREASE = bytes[1] == 1
      handshakeFormat = bytes[2] == 1 ? .publicMessage : .privateMessage
    }
  }
}

/// Groups outlive the process.
extension InteropSession {
  /// Every operation was stored when it was answered, so there is nothing left to do; the answer says that what is
  /// stored can be read.
  func save(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    guard
      let stored = try StoredGroup.load(
        member.group.groupID, client: member.client.client, from: member.client.storage),
      stored.group.context == member.group.context
    else { throw InteropError("notSupported", "another group with this identifier was stored since") }
    return ["context": member.context]
  }

  /// Reads a group again; also in a new process, which then has its client too.
  func load(_ parameters: Parameters) throws -> [String: JSON] {
    let owner = try storedClient(try parameters.text("client"))
    let groupID = try parameters.bytes("group_id")
    let name = try parameters.text("group")
    if let other = groups[name], other.client !== owner || other.group.groupID != groupID {
      throw InteropError("badParameter", "group exists: \(name)")
    }
    guard let stored = try StoredGroup.load(groupID, client: owner.client, from: owner.storage) else {
      throw InteropError("unknownName", "no stored group with this identifier")
    }
    let loaded = InteropGroup(owner, stored)
    // A group has one user: other names of it follow.
    for (other, member) in groups where member.client === owner && member.group.groupID == groupID {
      groups[other] = loaded
    }
    groups[name] = loaded
    var result: [String: JSON] = ["group": .string(name), "context": loaded.context]
    if let last = try owner.storage.read(loaded.lastMessage) {
      result["last_data"] = .hex(last.withSpan { bytes in [UInt8](bytes) })
    }
    result["has_pending"] = .bool(loaded.group.hasPendingCommit)
    return result
  }

  func storedClient(_ name: String) throws -> InteropClient {
    if let known = clients[name] { return known }
    let storage = try files.storage(of: name)
    let configuration =
      try storage.read(.interopConfiguration).map(MLSConfiguration.init) ?? MLSConfiguration()
    guard let client = try storage.loadClient(configuration: configuration) else {
      throw InteropError("unknownName", "no client: \(name)")
    }
    let loaded = InteropClient(name, client, storage)
    loaded.keyPackages = try storage.loadKeyPackages()
    for key in try storage.loadPreSharedKeys() { loaded.preSharedKeys[key.id] = key }
    clients[name] = loaded
    return loaded
  }
}
