import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// Messages in and out.
extension InteropSession {
  func encrypt(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let plaintext = try parameters.bytes("plaintext")
    let data = try parameters.optionalBytes("aad") ?? []
    let message = try member.update { group throws(MLSError) in
      try group.encrypt(plaintext, authenticatedData: data, using: &random)
    }
    return ["message": .hex(message.encoded()), "context": member.context]
  }

  func decrypt(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let message = try parameters.message("message")
    guard case .privateMessage(let content) = message, content.contentType == .application else {
      throw InteropError("badParameter", "message is no application message")
    }
    let processed = try member.process(message.encoded(), at: now)
    if case .duplicate = processed { throw InteropError("duplicate", "the message was read before") }
    guard case .application(let data) = processed else {
      throw InteropError("own", "the message is our own")
    }
    return [
      "plaintext": .hex(data.data), "sender": .integer(Int64(data.sender.value)),
      "aad": .hex(data.authenticatedData), "context": member.context,
    ]
  }

  func process(_ parameters: Parameters) throws -> [String: JSON] {
    let member = try group(parameters)
    let bytes = try parameters.bytes("message")
    let processed = try member.process(bytes, at: now)
    var result = Self.describe(processed)
    result["context"] = member.context
    return result
  }

  private static func describe(_ message: ProcessedMessage) -> [String: JSON] {
    switch message {
    case .application(let data):
      return [
        "kind": .string("application"), "sender": .integer(Int64(data.sender.value)),
        "data": .hex(data.data), "aad": .hex(data.authenticatedData),
      ]
    case .proposal(let proposal, let reference, let sender):
      return [
        "kind": .string("proposal"), "sender": describe(sender),
        "proposal_type": .integer(Int64(proposal.type.rawValue)), "reference": .hex(reference.bytes),
      ]
    case .commit(let effect): return describe(effect, kind: "commit", isRemoved: false)
    case .ownCommit(let effect): return describe(effect, kind: "own", isRemoved: false)
    case .removed(let effect): return describe(effect, kind: "commit", isRemoved: true)
    case .own: return ["kind": .string("own"), "sender": .null]
    case .duplicate: return ["kind": .string("duplicate"), "sender": .null]
    }
  }

  private static func describe(_ sender: Sender) -> JSON {
    switch sender {
    case .member(let leaf): .integer(Int64(leaf.value))
    case .external(let index): .object(["external": .integer(Int64(index))])
    case .newMemberProposal, .newMemberCommit: .string("new_member")
    }
  }

  private static func describe(
    _ effect: CommitEffect, kind: String, isRemoved: Bool
  ) -> [String: JSON] {
    func leaves(_ list: [LeafIndex]) -> JSON { .array(list.map { .integer(Int64($0.value)) }) }
    return [
      "kind": .string(kind), "sender": .integer(Int64(effect.committer.value)),
      "effect": .object([
        "epoch": .integer(Int64(clamping: effect.epoch)), "added": leaves(effect.added),
        "removed": leaves(effect.removed), "updated": leaves(effect.updated),
        "path": .bool(effect.hasPath), "reinit": .bool(effect.reInit != nil),
        "self_removed": .bool(isRemoved),
      ]),
    ]
  }
}
