import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// Clients, their key packages, and how they come into groups.
extension InteropSession {
  func hello(_ parameters: Parameters) throws -> [String: JSON] {
    [
      "engine": .string("palbe"), "suites": .array((1...7).map { .integer($0) }),
      "methods": .array(methods.keys.sorted().map { .string($0) }),
    ]
  }

  func createClient(_ parameters: Parameters) throws -> [String: JSON] {
    let name = try parameters.text("client")
    guard clients[name] == nil else { throw InteropError("badParameter", "client exists: \(name)") }
    let storage = try files.storage(of: name)
    guard try storage.read(.client) == nil else {
      throw InteropError("badParameter", "client is stored, load it: \(name)")
    }
    let suite = parameters.has("suite") ? try parameters.integer("suite", in: 0...65_535) : 1
    let identity =
      try parameters.optionalBytes("identity")
      ?? Array((parameters.has("name") ? try parameters.text("name") : name).utf8)
    var configuration = MLSConfiguration()
    configuration.ratchetTreeInWelcome = try parameters.flag("ratchet_tree_extension", default: true)
    // Others make key packages without an end.
    configuration.maximumLifetimeSeconds = nil
    configuration.sendsGREASE = try parameters.flag("grease", default: false)
    if try parameters.flag("public_handshakes", default: false) {
      configuration.handshakeFormat = .publicMessage
    }
    let client = try MLSClient(
      cipherSuite: CipherSuite(rawValue: UInt16(suite)), credential: .basic(identity: identity),
      configuration: configuration, using: &random)
    var transaction = MLSTransaction()
    transaction.write(client)
    transaction.write(configuration.record, .interopConfiguration)
    try storage.apply(transaction)
    clients[name] = InteropClient(name, client, storage)
    return ["signature_public_key": .hex(client.signaturePublicKey), "identity": .hex(identity)]
  }

  func keyPackage(_ parameters: Parameters) throws -> [String: JSON] {
    let owner = try client(parameters)
    let bundle = try owner.client.makeKeyPackage(
      lifetime: lifetime, lastResort: try parameters.flag("last_resort", default: false), using: &random)
    var transaction = MLSTransaction()
    transaction.write(bundle)
    try owner.storage.apply(transaction)
    owner.keyPackages.append(bundle)
    return ["message": .hex(bundle.message.encoded())]
  }

  func setPreSharedKey(_ parameters: Parameters) throws -> [String: JSON] {
    let owner = try client(parameters)
    let id = try parameters.bytes("psk_id")
    let key = PreSharedKey(id: id, key: SymmetricKey(copying: try parameters.bytes("psk")))
    var transaction = MLSTransaction()
    transaction.write(key)
    try owner.storage.apply(transaction)
    owner.preSharedKeys[id] = key
    for group in groups.values where group.client === owner {
      try group.update { group throws(MLSError) in group.register(key) }
    }
    return [:]
  }

  /// Stores a new group, keeps it under its name and answers with its context. What is left of a group with the same
  /// identifier that the client was removed from makes place; one that it is in does so only for an external join, with
  /// which a client that lost its state comes back.
  private func keep(
    _ name: String, _ owner: InteropClient, _ group: consuming MLSGroup, isExternalJoin: Bool = false
  ) throws -> [String: JSON] {
    let id = group.groupID
    if !isExternalJoin, let old = try StoredGroup.load(id, client: owner.client, from: owner.storage),
      old.group.isActive
    {
      throw MLSStorageError.groupExists
    }
    for (name, other) in groups where other.client === owner && other.group.groupID == id {
      groups[name] = nil
    }
    for key in owner.preSharedKeys.values { group.register(key) }
    let kept = InteropGroup(
      owner, try StoredGroup.insert(group, in: owner.storage, replacing: true))
    groups[name] = kept
    return ["group": .string(name), "context": kept.context]
  }

  func createGroup(_ parameters: Parameters) throws -> [String: JSON] {
    let owner = try client(parameters)
    let name = try newName(parameters)
    let group = try MLSGroup.create(
      groupID: try parameters.optionalBytes("group_id") ?? Array(name.utf8), client: owner.client,
      lifetime: lifetime, using: &random)
    return try keep(name, owner, group)
  }

  func join(_ parameters: Parameters) throws -> [String: JSON] {
    let owner = try client(parameters)
    let name = try newName(parameters)
    let group = try MLSGroup.join(
      try parameters.message("welcome"), keyPackages: owner.keyPackages, client: owner.client,
      ratchetTree: try parameters.ratchetTree(), preSharedKeys: Array(owner.preSharedKeys.values))
    let used = group.keyPackageReference
    let result = try keep(name, owner, group)
    owner.keyPackages.removeAll { $0.reference == used && !$0.isLastResort }
    return result
  }

  func externalJoin(_ parameters: Parameters) throws -> [String: JSON] {
    let owner = try client(parameters)
    let name = try newName(parameters)
    let join = try MLSGroup.joinExternally(
      try parameters.message("group_info"), client: owner.client,
      ratchetTree: try parameters.ratchetTree(), using: &random)
    let commit = join.commit.encoded()
    var result = try keep(name, owner, join.accepted(), isExternalJoin: true)
    result["commit"] = .hex(commit)
    return result
  }
}
