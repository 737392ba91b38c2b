import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// What a member reads and changes.
extension InteropSession {
  func groupInfo(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let message = try member.group.groupInfo(
      ratchetTree: try parameters.flag("ratchet_tree", default: true))
    return ["group_info": .hex(message.encoded()), "context": member.context]
  }

  func epoch(_ parameters: Parameters) throws -> [String: JSON] {
    ["context": try group(parameters).context]
  }

  func exportTree(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    return ["ratchet_tree": .hex(member.group.ratchetTree.encoded()), "context": member.context]
  }

  func roster(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let list = member.group.members.map { item -> JSON in
      var entry: [String: JSON] = [
        "leaf": .integer(Int64(item.leaf.value)), "signature_key": .hex(item.signatureKey),
      ]
      if case .basic(let identity) = item.credential { entry["identity"] = .hex(identity) }
      return .object(entry)
    }
    return ["members": .array(list), "context": member.context]
  }

  func exportSecret(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let label = try parameters.optionalBytes("label_hex") ?? Array(try parameters.text("label").utf8)
    let secret = try member.group.exportSecret(
      label: label, context: try parameters.optionalBytes("context") ?? [],
      length: Int(try parameters.integer("length", in: 0...65_535)))
    return ["secret": .hex([UInt8](secret.span)), "context": member.context]
  }

  // MARK: Commits

  private func finish(
    _ bundle: CommitBundle, _ member: InteropGroup, _ parameters: Parameters
  ) throws -> [String: JSON] {
    if try parameters.flag("merge", default: true) {
      try member.update { group throws(MLSError) in try group.mergePendingCommit(at: now) }
    }
    var result: [String: JSON] = ["commit": .hex(bundle.commit.encoded()), "context": member.context]
    if let welcome = bundle.welcome { result["welcome"] = .hex(welcome.encoded()) }
    if let tree = bundle.ratchetTree { result["ratchet_tree"] = .hex(tree.encoded()) }
    return result
  }

  func add(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let keyPackages = try parameters.keyPackages()
    let path = try parameters.flag("force_path", default: true)
    let bundle = try member.update { group throws(MLSError) in
      try group.add(keyPackages, path: path, at: now, using: &random)
    }
    return try finish(bundle, member, parameters)
  }

  func remove(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let leaves = try leaves(parameters, in: member)
    let bundle = try member.update { group throws(MLSError) in
      try group.remove(leaves, at: now, using: &random)
    }
    return try finish(bundle, member, parameters)
  }

  func update(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let bundle = try member.update { group throws(MLSError) in
      try group.commit(at: now, using: &random)
    }
    return try finish(bundle, member, parameters)
  }

  func commit(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    var list: [Proposal] = []
    if parameters.has("psk_ids") {
      for item in try parameters.list("psk_ids") {
        list.append(
          try member.group.preSharedKeyProposal(
            id: try Parameters.bytes(item, "psk_ids"), using: &random))
      }
    }
    let force = try parameters.flag("force_path", default: true)
    let proposals = list
    let bundle = try member.update { group throws(MLSError) in
      try group.commit(proposals, path: force, at: now, using: &random)
    }
    return try finish(bundle, member, parameters)
  }

  func merge(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    try member.update { group throws(MLSError) in try group.mergePendingCommit(at: now) }
    return ["context": member.context]
  }

  func clearPending(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    try member.update { group throws(MLSError) in group.clearPendingCommit() }
    return ["context": member.context]
  }

  // MARK: Proposals

  private func proposals(_ messages: [MLSMessage], _ member: InteropGroup) -> [String: JSON] {
    ["proposals": .array(messages.map { .hex($0.encoded()) }), "context": member.context]
  }

  func proposeAdd(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let keyPackages = try parameters.keyPackages()
    // All of them or none: a proposal that nobody is told of would be in our next commit.
    let messages = try member.update { group throws(MLSError) in
      var messages: [MLSMessage] = []
      for keyPackage in keyPackages { messages.append(try group.proposeAdd(keyPackage, using: &random)) }
      return messages
    }
    return proposals(messages, member)
  }

  func proposeRemove(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let leaves = try leaves(parameters, in: member)
    let messages = try member.update { group throws(MLSError) in
      var messages: [MLSMessage] = []
      for leaf in leaves { messages.append(try group.proposeRemove(leaf, using: &random)) }
      return messages
    }
    return proposals(messages, member)
  }

  func proposeUpdate(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let message = try member.update { group throws(MLSError) in
      try group.proposeUpdate(using: &random)
    }
    return proposals([message], member)
  }
}
