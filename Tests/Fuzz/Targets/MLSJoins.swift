import PalbeMLSMessages
import PalbeUnits
import PalbeWire

@testable import PalbeMLS

extension FuzzTarget {
  /// A Welcome from somebody who knows how to make one: any tree, any GroupInfo, any secrets, consistently hashed,
  /// signed and encrypted where the program says so.
  static let mlsWelcome = FuzzTarget(name: "mls-welcome") { bytes in
    var forge = Forge(bytes)
    let (welcome, tree) = forge.welcome()
    let world = forge.world
    guard let message = try? MLSMessage(decoding: welcome) else { return }
    if var group = try? MLSGroup.join(
      message, keyPackages: [world.outsidersBundle], client: world.outsider, ratchetTree: tree,
      preSharedKeys: [world.preSharedKey])
    {
      use(&group)
    }
  }

  /// A GroupInfo from somebody who can sign one: joining by it is refused or leads into a group.
  static let mlsGroupInfo = FuzzTarget(name: "mls-group-info") { bytes in
    var forge = Forge(bytes)
    let (info, tree) = forge.groupInfo()
    let client = forge.choices.pick([forge.world.outsider, forge.world.clients[6]])
    let old = forge.choices.below(4) == 0 ? forge.leafIndex() : nil
    guard let message = try? MLSMessage(decoding: MLSMessage.groupInfo(info).encoded()) else { return }
    do {
      let join = try MLSGroup.joinExternally(
        message, client: client, ratchetTree: tree, replacing: old, using: &forge.random)
      var group = join.accepted()
      use(&group)
    } catch {}
  }

  /// A key package, changed and signed again, is added to a group: refused, or its owner can join.
  static let mlsKeyPackage = FuzzTarget(name: "mls-key-package") { bytes in
    var forge = Forge(bytes)
    var group = forge.world.honest.copy()
    group.clearPendingProposals()
    let keyPackage = forge.keyPackage()
    guard
      case .keyPackage(let received)? = try? MLSMessage(
        decoding: MLSMessage.keyPackage(keyPackage).encoded())
    else { return }
    let before = Standing(group)
    guard
      let bundle = try? group.add(
        [received], path: forge.choices.flag(), at: MLSWorld.now, using: &forge.random)
    else {
      return demand(before == Standing(group) && !group.hasPendingCommit, "a refused add left something")
    }
    var victim = forge.world.victim.copy()
    guard case .commit? = try? victim.process(bundle.commit.encoded(), at: MLSWorld.now) else {
      fatalError("a commit that its sender found right was refused")
    }
    use(&victim)
  }

  /// A ratchet tree, as bytes or a genuine one changed: decodes canonically, validates or throws.
  static let mlsTree = FuzzTarget(name: "mls-tree") { bytes in
    var forge = Forge(Array(bytes.dropFirst()))
    let wire: RatchetTreeExtension
    if bytes.first == 0 {
      guard let decoded = try? RatchetTreeExtension(decoding: Array(bytes.dropFirst())) else { return }
      demand(decoded.encoded() == Array(bytes.dropFirst()), "not canonical")
      wire = decoded
    } else {
      wire = forge.tree()
    }
    guard var tree = try? RatchetTree(wire, crypto: forge.crypto),
      let rules = try? LeafValidation(
        crypto: forge.crypto, policy: AnyCredentialAccepted(), groupID: forge.world.mallory.groupID,
        extensions: [])
    else { return }
    let hash = tree.rootHash()
    guard (try? TreeValidation.check(&tree, rules)) != nil else { return }
    demand(tree.rootHash() == hash && tree.wire == wire, "validation changed the tree")
  }
}

extension Forge {
  /// A genuine tree with changes.
  mutating func tree() -> RatchetTreeExtension {
    var nodes = world.mallory.ratchetTree.nodes
    for _ in 0..<choices.below(4) where !nodes.isEmpty {
      let place = choices.below(nodes.count)
      switch choices.below(10) {
      case 0: nodes[place] = nil
      case 1: nodes.removeLast()
      case 2: nodes.append(nil)
      case 3: nodes.append(contentsOf: nodes)
      case 4: nodes.swapAt(place, choices.below(nodes.count))
      case 5: nodes[place] = nodes[choices.below(nodes.count)]
      case 6: nodes += Array(repeating: nil, count: Int(choices.byte())) + [nodes[place]]
      case 7: nodes.removeFirst()
      default:
        switch nodes[place] {
        case .leaf(var leaf):
          change(&leaf)
          signAgain(&leaf, at: LeafIndex(UInt32(place / 2)))
          nodes[place] = .leaf(leaf)
        case .parent(var parent):
          switch choices.below(4) {
          case 0: parent.encryptionKey = choices.change(parent.encryptionKey)
          case 1: parent.parentHash = choices.change(parent.parentHash)
          case 2: parent.unmergedLeaves.append(leafIndex())
          default: parent.unmergedLeaves = (0..<choices.below(5)).map { _ in leafIndex() }
          }
          nodes[place] = .parent(parent)
        case nil:
          nodes[place] = .parent(
            ParentNode(
              encryptionKey: world.outsidersBundle.keyPackage.initKey, parentHash: choices.bytes(),
              unmergedLeaves: [leafIndex()]))
        }
      }
    }
    return RatchetTreeExtension(nodes: nodes)
  }

  /// A tree for a new group that the outsider is in, last of all.
  private mutating func treeWithOutsider() -> RatchetTreeExtension {
    var wire = world.mallory.ratchetTree
    if var tree = try? RatchetTree(wire, crypto: crypto) {
      _ = try? tree.add(world.outsidersBundle.keyPackage.leafNode)
      wire = tree.wire
    }
    return wire
  }

  private mutating func context(_ tree: RatchetTreeExtension) -> GroupContext {
    var context = world.mallory.context
    if var counted = try? RatchetTree(tree, crypto: crypto) { context.treeHash = counted.rootHash() }
    switch choices.below(12) {
    case 0: context.treeHash = choices.change(context.treeHash)
    case 1: context.version = ProtocolVersion(rawValue: UInt16(choices.byte()))
    case 2: context.cipherSuite = CipherSuite(rawValue: UInt16(choices.below(9)))
    case 3: context.epoch = choices.pick([0, .max, .max - 1])
    case 4: context.extensions = extensions()
    case 5: context.confirmedTranscriptHash = choices.change(context.confirmedTranscriptHash)
    case 6: context.groupID = choices.bytes()
    default: break
    }
    return context
  }

  private mutating func signed(_ info: GroupInfo) -> GroupInfo {
    var info = info
    if choices.below(8) == 0 { info.signer = leafIndex() }
    if choices.below(8) == 0 { info.extensions += extensions() }
    if choices.below(8) == 0 { info.confirmationTag = choices.change(info.confirmationTag) }
    info.signature = sign(info.toBeSigned, "GroupInfoTBS", by: signer())
    return info
  }

  /// A GroupInfo for joining by an external commit, and the tree beside it.
  mutating func groupInfo() -> (GroupInfo, RatchetTreeExtension?) {
    let tree = tree()
    let isInside = choices.flag()
    var key = MLSBytes()
    key.opaque(
      choices.below(4) == 0 ? choices.bytes() : world.outsidersBundle.keyPackage.initKey)
    var extensions = [Extension(type: .externalPub, data: key.bytes)]
    if isInside { extensions.append(Extension(type: .ratchetTree, data: tree.encoded())) }
    let info = GroupInfo(
      context: context(tree), extensions: extensions, confirmationTag: world.mallory.epoch.confirmationTag,
      signer: LeafIndex(1))
    return (signed(info), isInside ? nil : tree)
  }

  /// A Welcome to the outsider and the tree beside it.
  mutating func welcome() -> ([UInt8], RatchetTreeExtension?) {
    let tree = choices.below(3) == 0 ? self.tree() : treeWithOutsider()
    let context = context(tree)
    let isInside = choices.flag()
    var psks: [PreSharedKeyID] = []
    for _ in 0..<choices.below(3) { psks.append(preSharedKeyID()) }
    let joiner = Secret(copying: choices.below(6) == 0 ? choices.bytes() : random.bytes(32))
    let known = psks.map { (id: $0, key: world.preSharedKey.secret) }
    let pskSecret = KeySchedule.pskSecret(known, crypto: crypto)
    let schedule = KeySchedule(
      joinerSecret: joiner, pskSecret: pskSecret, context: context.encoded(), crypto: crypto)
    var info = GroupInfo(
      context: context,
      extensions: isInside ? [Extension(type: .ratchetTree, data: tree.encoded())] : [],
      confirmationTag: crypto.mac(
        context.confirmedTranscriptHash, key: schedule.secrets.confirmationKey), signer: LeafIndex(1))
    info = signed(info)
    var plain = info.encoded()
    if choices.below(8) == 0 { plain = choices.change(plain) }
    let key = KeySchedule.welcomeKey(schedule.welcomeSecret, crypto: crypto)
    let sealed =
      (try? crypto.seal(plain, key: key.key, nonce: [UInt8](key.nonce.span), authenticating: [])) ?? []

    // GroupSecrets.
    var secrets = MLSBytes()
    secrets.opaque([UInt8](joiner.span))
    if choices.below(3) == 0 {
      secrets.uint8(1)
      secrets.opaque(choices.below(3) == 0 ? choices.bytes() : random.bytes(32))
    } else {
      secrets.uint8(0)
    }
    var ids = MLSBytes()
    for id in psks { ids.append(id) }
    secrets.opaque(ids.bytes)
    var plaintext = secrets.bytes
    if choices.below(6) == 0 { plaintext = choices.change(plaintext) }
    let bundle = world.outsidersBundle
    let encrypted =
      (try? crypto.encrypt(
        Secret(copying: plaintext), to: bundle.keyPackage.initKey, label: "Welcome", context: sealed,
        using: &random)) ?? HPKECiphertext(kemOutput: [], ciphertext: [])
    var entries = [EncryptedGroupSecrets(newMember: bundle.reference, encryptedGroupSecrets: encrypted)]
    if choices.below(8) == 0 {
      entries.insert(
        EncryptedGroupSecrets(
          newMember: choices.flag() ? bundle.reference : choices.bytes(),
          encryptedGroupSecrets: HPKECiphertext(kemOutput: choices.bytes(), ciphertext: choices.bytes())),
        at: 0)
    }
    let suite =
      choices.below(12) == 0 ? CipherSuite(rawValue: UInt16(choices.below(9))) : crypto.suite
    let welcome = Welcome(cipherSuite: suite, secrets: entries, encryptedGroupInfo: sealed)
    return (MLSMessage.welcome(welcome).encoded(), isInside ? nil : tree)
  }
}
