import PalbeMLSMessages
import PalbeUnits

@testable import PalbeMLS

extension FuzzTarget {
  /// A member with real keys sends what no honest one would: odd proposals, commits with odd lists and paths, any
  /// generation, any sender, any plaintext. What is refused changes nothing, and what an honest member says then
  /// is understood.
  static let mlsMalice = FuzzTarget(name: "mls-malice") { bytes in
    var forge = Forge(bytes)
    var victim = forge.world.victim.copy()
    var mallory = forge.world.mallory.copy()
    var honest = forge.world.honest.copy()
    for _ in 0..<4 where !forge.choices.isAtEnd {
      let message = forge.message(&mallory)
      let before = Standing(victim)
      do {
        switch try victim.process(message, at: MLSWorld.now) {
        case .commit, .ownCommit:
          use(&victim)
          return
        case .removed:
          demand(!victim.isActive, "removed, and still active")
          return
        default:
          demand(before == Standing(victim), "a message that is no commit changed the epoch")
        }
      } catch {
        demand(before == Standing(victim), "a refused message changed the group")
      }
    }
    hear(&honest, &victim, withCommit: bytes.count % 3 == 0)
  }

  /// Somebody outside sends external commits and proposals.
  static let mlsOutsider = FuzzTarget(name: "mls-outsider") { bytes in
    var forge = Forge(bytes)
    var victim = forge.world.victim.copy()
    var honest = forge.world.honest.copy()
    for _ in 0..<3 where !forge.choices.isAtEnd {
      guard let message = forge.externalCommit() else { continue }
      let before = Standing(victim)
      do {
        switch try victim.process(message, at: MLSWorld.now) {
        case .commit:
          use(&victim)
          return
        case .removed: return
        default: demand(before == Standing(victim), "a message that is no commit changed the epoch")
        }
      } catch {
        demand(before == Standing(victim), "a refused message changed the group")
      }
    }
    hear(&honest, &victim, withCommit: bytes.count % 3 == 0)
  }

  /// What must stay the same while the group is in one epoch.
  struct Standing: Equatable {
    let context: GroupContext
    let authenticator: [UInt8]
    let isActive: Bool

    init(_ group: borrowing MLSGroup) {
      context = group.context
      authenticator = group.epochAuthenticator
      isActive = group.isActive
    }
  }

  /// A group that accepted something odd still works by itself.
  static func use(_ group: inout MLSGroup) {
    var random = RandomSource(seed: 3)
    guard group.isActive else { return }
    demand((try? group.encrypt([1], using: &random)) != nil, "nothing can be sent any more")
    demand((try? group.groupInfo()) != nil, "no GroupInfo any more")
    demand(RatchetTreeRoundTrip.holds(group.ratchetTree), "a tree that does not decode")
    do {
      _ = try group.commit(at: MLSWorld.now, using: &random)
    } catch MLSError.commit(.epochsExhausted) {
      return
    } catch { fatalError("no commit is possible any more: \(error)") }
    demand((try? group.mergePendingCommit(at: MLSWorld.now)) != nil, "a commit does not merge")
  }

  /// A message and a commit of an honest member, after whatever was refused.
  private static func hear(_ honest: inout MLSGroup, _ victim: inout MLSGroup, withCommit: Bool) {
    var random = RandomSource(seed: 4)
    guard let message = try? honest.encrypt([1, 2, 3], using: &random),
      case .application(let data)? = try? victim.process(message.encoded(), at: MLSWorld.now)
    else { fatalError("an honest message was not read") }
    demand(data.data == [1, 2, 3], "an honest message was changed")
    // The dearer part, so not every time.
    guard withCommit else { return }
    guard let commit = try? honest.commit(at: MLSWorld.now, using: &random).commit,
      (try? honest.mergePendingCommit(at: MLSWorld.now)) != nil,
      case .commit? = try? victim.process(commit.encoded(), at: MLSWorld.now)
    else { fatalError("an honest commit was not processed") }
    demand(honest.epochAuthenticator == victim.epochAuthenticator, "the group fell apart")
  }
}

enum RatchetTreeRoundTrip {
  static func holds(_ tree: RatchetTreeExtension) -> Bool {
    (try? RatchetTreeExtension(decoding: tree.encoded())) == tree
  }
}

extension Forge {
  /// Any message of Mallory's.
  mutating func message(_ mallory: inout MLSGroup) -> [UInt8] {
    let me = world.clients[1]
    var content = FramedContent(
      groupID: mallory.groupID, epoch: mallory.epochNumber, sender: .member(LeafIndex(1)),
      authenticatedData: [], content: .application([]))
    switch choices.below(5) {
    case 0:
      content.content = .application(choices.bytes())
      return frame(content, nil, from: mallory, by: me)
    case 1:
      content.content = .proposal(proposal())
      return frame(content, nil, from: mallory, by: me)
    case 2:
      // Genuine, then changed as bytes.
      let genuine =
        choices.flag()
        ? try? mallory.encrypt([1], using: &random) : try? mallory.proposeUpdate(using: &random)
      return choices.change(genuine?.encoded() ?? [])
    default: return commit(&mallory)
    }
  }

  /// A commit that the engine made from a valid list, then changed and signed again.
  private mutating func commit(_ mallory: inout MLSGroup) -> [UInt8] {
    var list: [Proposal] = []
    for _ in 0..<choices.below(3) { list.append(proposal()) }
    mallory.clearPendingCommit()
    var bundle = try? mallory.commit(list, path: choices.flag(), at: MLSWorld.now, using: &random)
    if bundle == nil { bundle = try? mallory.commit(at: MLSWorld.now, using: &random) }
    guard case .publicMessage(let genuine)? = bundle?.commit, let staged = mallory.pending?.staged,
      case .commit(var commit) = genuine.content.content
    else { fatalError("no commit") }
    let isGenuine = choices.below(4) == 0
    mallory.clearPendingCommit()
    if isGenuine { return MLSMessage.publicMessage(genuine).encoded() }
    for _ in 0..<1 + choices.below(2) {
      change(&commit, staged.epoch.tree, LeafIndex(1), staged.epoch.context)
    }
    var content = genuine.content
    content.content = .commit(commit)
    let tag =
      choices.below(4) == 0 ? choices.bytes() : genuine.authentication.confirmationTag ?? []
    return frame(content, tag, from: mallory, by: signer())
  }

  /// An external commit, genuine or changed and signed again.
  mutating func externalCommit() -> [UInt8]? {
    let client = choices.pick([world.outsider, world.outsider, world.clients[6], world.clients[2]])
    let old = choices.below(3) == 0 ? leafIndex() : nil
    guard let info = try? world.mallory.groupInfo(),
      let join = try? MLSGroup.joinExternally(
        info, client: client, replacing: old,
        preSharedKeys: choices.flag() ? [world.preSharedKey] : [], using: &random),
      case .publicMessage(var message) = join.commit,
      case .commit(var commit) = message.content.content
    else { return nil }
    if choices.below(4) == 0 { return MLSMessage.publicMessage(message).encoded() }
    let group = join.accepted()
    for _ in 0..<1 + choices.below(2) {
      change(&commit, group.epoch.tree, group.ownLeaf, group.context)
    }
    message.content.content = .commit(commit)
    switch choices.below(10) {
    case 0: message.content.sender = .member(leafIndex())
    case 1: message.content.sender = .external(index: UInt32(choices.below(3)))
    case 2:
      message.content.sender = .newMemberProposal
      message.content.content = .proposal(proposal())
    case 3: message.content.epoch = choices.pick([0, .max])
    default: break
    }
    let type = message.content.content.type
    let signed = try? Framing.sign(
      message.content, as: .publicMessage, context: world.mallory.epoch.contextBytes,
      key: client.signatureKey, crypto: crypto)
    message.authentication = ContentAuthentication(
      signature: signed ?? [],
      confirmationTag: type == .commit
        ? choices.below(4) == 0 ? choices.bytes() : message.authentication.confirmationTag ?? [] : nil)
    return MLSMessage.publicMessage(message).encoded()
  }

  private mutating func change(
    _ commit: inout Commit, _ tree: RatchetTree, _ committer: LeafIndex, _ next: GroupContext
  ) {
    var proposals = commit.proposals
    var path = commit.path
    switch choices.below(9) {
    case 0: proposals.append(.proposal(proposal()))
    case 1: proposals.insert(.proposal(proposal()), at: 0)
    case 2: proposals.append(.reference(reference()))
    case 3: if let first = proposals.first { proposals.append(first) }
    case 4: proposals.reverse()
    case 5: proposals = []
    case 6: path = nil
    default: if path != nil { change(&path!, tree, committer, next) }
    }
    commit = Commit(proposals: proposals, path: path)
  }

  private mutating func change(
    _ path: inout UpdatePath, _ tree: RatchetTree, _ committer: LeafIndex, _ next: GroupContext
  ) {
    let place = choices.below(path.nodes.count)
    switch choices.below(10) {
    case 0: _ = path.nodes.popLast()
    case 1: if let last = path.nodes.last { path.nodes.append(last) }
    case 2: path.nodes.reverse()
    case 3: path.nodes = []
    case 4 where !path.nodes.isEmpty:
      path.nodes[place].encryptionKey = choices.change(path.nodes[place].encryptionKey)
    case 5 where !path.nodes.isEmpty: _ = path.nodes[place].encryptedPathSecrets.popLast()
    case 6 where !path.nodes.isEmpty:
      let extra = HPKECiphertext(kemOutput: choices.bytes(), ciphertext: choices.bytes())
      path.nodes[place].encryptedPathSecrets.append(extra)
    case 7 where !path.nodes.isEmpty:
      // Path secrets of any length, encrypted as they should be.
      var context = next
      context.confirmedTranscriptHash = world.mallory.context.confirmedTranscriptHash
      let steps = tree.filteredDirectPath(of: committer)
      guard place < steps.count else { return }
      let secret = Secret(copying: choices.bytes())
      let keys = tree.resolution(steps[place].copathChild).compactMap { tree.encryptionKey($0) }
      path.nodes[place].encryptedPathSecrets = keys.compactMap {
        try? crypto.encrypt(
          secret, to: $0, label: "UpdatePathNode", context: context.encoded(), using: &random)
      }
    case 8 where !path.nodes.isEmpty && !path.nodes[place].encryptedPathSecrets.isEmpty:
      let other = choices.below(path.nodes[place].encryptedPathSecrets.count)
      let old = path.nodes[place].encryptedPathSecrets[other]
      path.nodes[place].encryptedPathSecrets[other] = HPKECiphertext(
        kemOutput: choices.flag() ? choices.change(old.kemOutput) : old.kemOutput,
        ciphertext: choices.change(old.ciphertext))
    default:
      change(&path.leafNode)
      signAgain(&path.leafNode, at: committer)
    }
  }
}
