import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// The MLS engine driven by lines of JSON, so that any other implementation can be run against it.
///
///     {"id": 1, "method": "create_client", "params": {"client": "alice", "suite": 1}}
///     {"id": 1, "ok": true, "result": {"identity": "616c696365", "signature_public_key": "…"}}
///
/// Bytes are hexadecimal of complete wire structures. A line that cannot be carried out is answered with `ok: false`,
/// an error and its `kind`; the session goes on.
public final class InteropSession {
  var clients: [String: InteropClient] = [:]
  var groups: [String: InteropGroup] = [:]
  var random: RandomSource
  /// Everything is stored as it changes.
  let files: SessionFiles
  private let clock: () -> UInt64

  /// A session without clients. `clock` gives Unix seconds; `storage` is a file that outlives the session, nil for one
  /// that goes with it.
  public init(random: RandomSource, storage: String? = nil, clock: @escaping () -> UInt64) {
    self.random = random
    self.clock = clock
    files = SessionFiles(path: storage, random: random)
  }

  var now: UInt64 { clock() }
  var lifetime: Lifetime { Lifetime(notBefore: now - min(now, 3_600), notAfter: now + 90 * 86_400) }

  typealias Method = (InteropSession) -> (Parameters) throws -> [String: JSON]

  let methods: [String: Method] = [
    "hello": InteropSession.hello, "create_client": InteropSession.createClient,
    "key_package": InteropSession.keyPackage, "set_psk": InteropSession.setPreSharedKey,
    "create_group": InteropSession.createGroup, "join": InteropSession.join,
    "external_join": InteropSession.externalJoin, "group_info": InteropSession.groupInfo,
    "epoch": InteropSession.epoch, "export_tree": InteropSession.exportTree,
    "roster": InteropSession.roster, "export_secret": InteropSession.exportSecret,
    "add": InteropSession.add, "remove": InteropSession.remove, "update": InteropSession.update,
    "commit": InteropSession.commit, "merge": InteropSession.merge,
    "clear_pending": InteropSession.clearPending, "propose_add": InteropSession.proposeAdd,
    "propose_remove": InteropSession.proposeRemove, "propose_update": InteropSession.proposeUpdate,
    "process": InteropSession.process, "encrypt": InteropSession.encrypt,
    "decrypt": InteropSession.decrypt, "save": InteropSession.save, "load": InteropSession.load,
  ]

  /// The answer to one line.
  public func answer(_ line: String) -> String {
    guard let request = JSON.parse(line), case .object = request else {
      return refusal(.null, InteropError("badRequest", "the line is no JSON object"))
    }
    let id = request["id"] ?? .null
    do {
      guard let name = request["method"]?.text else { throw InteropError("badRequest", "no method") }
      guard let method = methods[name] else {
        throw InteropError("unknownMethod", "unknown method: \(name)")
      }
      let parameters = Parameters(values: request["params"] ?? .object([:]))
      let result = try method(self)(parameters)
      return JSON.object(["id": id, "ok": .bool(true), "result": .object(result)]).line
    } catch let error as InteropError {
      return refusal(id, error)
    } catch let error as MLSError {
      return refusal(id, InteropError(error))
    } catch let error as MLSStorageError {
      return refusal(id, InteropError(error))
    } catch StoredGroupError.mls(let error) {
      return refusal(id, InteropError(error))
    } catch StoredGroupError.storage(let error) {
      return refusal(id, InteropError(error))
    } catch {
      return refusal(id, InteropError("internal", String(describing: error)))
    }
  }

  private func refusal(_ id: JSON, _ error: InteropError) -> String {
    var answer: [String: JSON] = [
      "id": id, "ok": .bool(false), "error": .string(error.message), "kind": .string(error.kind),
    ]
    if let rule = error.rule { answer["rule"] = .string(rule) }
    return JSON.object(answer).line
  }

  // MARK: Names

  func client(_ parameters: Parameters) throws -> InteropClient {
    let name = try parameters.text("client")
    if let client = clients[name] { return client }
    // One of an earlier run.
    guard files.outlivesSession else { throw InteropError("unknownName", "no client: \(name)") }
    return try storedClient(name)
  }

  func group(_ parameters: Parameters) throws -> InteropGroup {
    let name = try parameters.text("group")
    guard let group = groups[name] else { throw InteropError("unknownName", "no group: \(name)") }
    return group
  }

  /// A name for a new group.
  func newName(_ parameters: Parameters) throws -> String {
    let name = try parameters.text("group")
    guard groups[name] == nil else { throw InteropError("badParameter", "group exists: \(name)") }
    return name
  }

  /// The leaf of a member: a local client's name, or an object with `leaf`, `identity` or `key_package`.
  func leaf(_ member: JSON, in group: InteropGroup) throws -> LeafIndex {
    let members = group.group.members
    if let number = member["leaf"]?.number {
      guard let value = UInt32(exactly: number) else { throw InteropError("badParameter", "leaf") }
      return LeafIndex(value)
    }
    let found: Member?
    if let name = member.text {
      guard let client = clients[name] else { throw InteropError("unknownName", "no client: \(name)") }
      found = members.first { $0.signatureKey == client.client.signaturePublicKey }
    } else if let identity = member["identity"] {
      let credential = Credential.basic(identity: try Parameters.bytes(identity, "identity"))
      found = members.first { $0.credential == credential }
    } else if let keyPackage = member["key_package"] {
      let key = try Parameters.keyPackage(keyPackage).leafNode.signatureKey
      found = members.first { $0.signatureKey == key }
    } else {
      throw InteropError("badParameter", "a member is a client's name, or has leaf, identity or key_package")
    }
    guard let found else { throw InteropError("unknownName", "no such member: \(member.line)") }
    return found.leaf
  }

  func leaves(_ parameters: Parameters, in group: InteropGroup) throws -> [LeafIndex] {
    try parameters.list("members").map { try leaf($0, in: group) }
  }
}

/// A client and what it keeps for its groups.
final class InteropClient {
  let name: String
  let client: MLSClient
  let storage: SQLiteMLSStorage
  var keyPackages: [KeyPackageBundle] = []
  var preSharedKeys: [[UInt8]: PreSharedKey] = [:]

  init(_ name: String, _ client: MLSClient, _ storage: SQLiteMLSStorage) {
    self.name = name
    self.client = client
    self.storage = storage
  }
}

/// A group and the client in it. A class, because a group cannot be copied.
final class InteropGroup {
  let client: InteropClient
  private var stored: StoredGroup

  init(_ client: InteropClient, _ stored: consuming StoredGroup) {
    self.client = client
    self.stored = stored
  }

  /// The group, to read.
  var group: MLSGroup { _read { yield stored.group } }

  /// Runs an operation and stores what it did; nothing happened when it throws.
  @discardableResult
  func update<Result>(
    _ body: (inout MLSGroup) throws(MLSError) -> Result
  ) throws(StoredGroupError) -> Result {
    try stored.update(body)
  }

  /// Processes a message. The data of an application message is stored together with the end of its key: whatever
  /// happens to the answer, it is not lost.
  func process(_ bytes: [UInt8], at now: UInt64) throws(StoredGroupError) -> ProcessedMessage {
    let key = lastMessage
    return try stored.update(
      { group throws(MLSError) in try group.process(bytes, at: now) },
      also: { result, transaction throws(MLSStorageError) in
        if case .application(let message) = result {
          transaction.write(MLSRecord(copying: message.data.span), key)
        }
      })
  }

  /// The application message that was read last.
  var lastMessage: MLSRecordKey { .application(Array("last".utf8), in: stored.group.groupID) }

  /// What every answer about a group carries.
  var context: JSON {
    let context = group.context
    return .object([
      "group_id": .hex(context.groupID), "epoch": .integer(Int64(clamping: context.epoch)),
      "tree_hash": .hex(context.treeHash),
      "confirmed_transcript_hash": .hex(context.confirmedTranscriptHash),
      "epoch_authenticator": .hex(group.epochAuthenticator),
    ])
  }
}
