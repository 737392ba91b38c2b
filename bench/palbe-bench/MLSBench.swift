import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// One line of the result.
struct MLSRow {
  enum Operation: String, CaseIterable {
    case create, addAll = "add_all", join, commit, process, addOne = "add_one", encrypt, decrypt, export
  }
  enum Tree: String {
    /// Right after all but the first member were added by one commit: nothing but leaves beside the adder's path.
    case flat
    /// Every member has committed once: no blank node but past the last member, no unmerged leaf.
    case warm
  }

  let operation: Operation
  let members: Int
  let tree: Tree
  /// Microseconds, ours and the floor.
  let us: Double
  let floorUS: Double
  /// What travels: the commit, the Welcome of a join, the message; the secret of the exporter.
  let bytes: Int
  let residentBytes: Int
  /// Heap allocations of ours.
  let mallocs: Double

  var ratio: Double { us / floorUS }
}

/// Lines that belong to no operation of the table.
struct MLSNotes {
  /// The commit of a warm tree of 1,000: the RFC encoding of its fields, and ours.
  var commitSize: (members: Int, computed: Int, ours: Int)?
  /// Processing a warm commit where both members are neighbours, and all path keys are derived.
  var neighbour: [(members: Int, us: Double, floorUS: Double)] = []
}

/// A bench stops at the first error: its input is its own.
func must<Result: ~Copyable>(_ body: () throws -> Result) -> Result {
  do { return try body() } catch { fatalError("the engine refused its own: \(error)") }
}

/// The MLS engine beside raw OpenSSL, suite 1, basic credentials with identities of five bytes.
struct MLSBench {
  static let sizes = [2, 10, 100, 1_000, 10_000]
  let slicing: Slicing
  let progress: (String) -> Void
  var rows: [MLSRow] = []
  var notes = MLSNotes()

  mutating func run(_ members: [Int]) {
    for count in members {
      flat(count)
      warm(count)
    }
  }

  mutating func row(
    _ operation: MLSRow.Operation, _ count: Int, _ tree: MLSRow.Tree, bytes: @autoclosure () -> Int,
    floor: RawWork,
    ours: () -> Sample
  ) {
    progress("\(count) members, \(tree.rawValue) tree, \(operation.rawValue) …")
    let raw = RawKeys(floor)
    let result = slicing.measure(ours: ours, floor: raw.run)
    rows.append(
      MLSRow(
        operation: operation, members: count, tree: tree, us: result.us, floorUS: result.floorUS,
        bytes: bytes(), residentBytes: residentByteCount(), mallocs: result.mallocs))
  }

  // MARK: Trees

  private mutating func flat(_ count: Int) {
    progress("\(count) members, flat tree …")
    var maker = MemberMaker(seed: 1)
    let creator = maker.client()
    create(count, creator, &maker)
    let owner = Owner(maker.create(creator))
    let joiners = maker.joiners(count - 1)
    let keyPackages = joiners.map(\.keyPackage.keyPackage)
    let welcome = addAll(count, owner, keyPackages, &maker)
    must { _ = try owner.group.mergePendingCommit(at: noon) }
    let shape = TreeShape(owner.group.ratchetTree)
    let joiner = joiners[count - 2]
    join(count, .flat, welcome, joiner, shape, adder: 0)
    let receiver = Owner(maker.join(welcome, joiner))
    measure(count, .flat, sender: owner, receiver: receiver, &maker)
  }

  private mutating func warm(_ count: Int) {
    progress("\(count) members, warm tree …")
    var maker = MemberMaker(seed: 2)
    let clients = (0..<count).map { _ in maker.client() }
    let warm = must {
      try WarmGroup(groupID: MemberMaker.groupID, clients: clients, lifetime: day, using: &maker.random)
    }
    // The last leaf has the shortest path where the tree is not full.
    let sender = Owner(warm.member(count - 1))
    let joiner = maker.joiners(1)[0]
    let bundle = must {
      try sender.group.add([joiner.keyPackage.keyPackage], at: noon, using: &maker.random)
    }
    join(
      count, .warm, bundle.welcome!.encoded(), joiner, TreeShape(sender.group.ratchetTree).adding().shape,
      adder: count - 1)
    sender.group.clearPendingCommit()
    measure(count, .warm, sender: sender, receiver: Owner(warm.member(0)), &maker)
    if count > 2 {
      neighbours(count, Owner(warm.member(0)), Owner(warm.member(1)), &maker)
    }
  }

  // MARK: Operations

  private mutating func create(_ count: Int, _ client: MLSClient, _ maker: inout MemberMaker) {
    row(.create, count, .flat, bytes: 0, floor: RawWork(signatures: [leafBytes], publicKeys: 1)) {
      var sample = Sample()
      _ = timed(&sample) { maker.create(client) }
      return sample
    }
  }

  /// Returns the Welcome of the last run, whose commit waits.
  private mutating func addAll(
    _ count: Int, _ owner: Owner, _ keyPackages: [KeyPackage], _ maker: inout MemberMaker
  ) -> [UInt8] {
    var (commit, welcome) = ([UInt8](), [UInt8]())
    func add() -> Sample {
      owner.group.clearPendingCommit()
      var sample = Sample()
      timed(&sample) {
        let bundle = must { try owner.group.add(keyPackages, at: noon, using: &maker.random) }
        commit = bundle.commit.encoded()
        welcome = bundle.welcome?.encoded() ?? []
      }
      return sample
    }
    if count < 1_000 { _ = add() }
    var floor = TreeShape(width: count).commit(by: 0, adding: Set(1..<count))
    // The lengths of both are known well enough before there are any.
    floor.signatures = [leafBytes, max(commit.count, 300 * count), max(welcome.count, 190 * count)]
    floor.verifications = [(leafBytes, count - 1), (keyPackageBytes, count - 1)]
    row(.addAll, count, .flat, bytes: commit.count, floor: floor) { add() }
    return welcome
  }

  private mutating func join(
    _ count: Int, _ tree: MLSRow.Tree, _ welcome: [UInt8], _ joiner: Joiner, _ shape: TreeShape, adder: Int
  ) {
    let own = shape.memberCount - 1
    var floor = shape.open(from: adder, at: own)
    floor.verifications = [(leafBytes, shape.memberCount), (welcome.count, 1)]
    row(.join, count, tree, bytes: welcome.count, floor: floor) {
      var sample = Sample()
      _ = timed(&sample) {
        must {
          try MLSGroup.join(
            MLSMessage(decoding: welcome), keyPackages: [joiner.keyPackage], client: joiner.client)
        }
      }
      return sample
    }
  }

  private mutating func measure(
    _ count: Int, _ tree: MLSRow.Tree, sender: Owner, receiver: Owner, _ maker: inout MemberMaker
  ) {
    commit(count, tree, sender, receiver, &maker)
    addOne(count, tree, sender, &maker)
    messages(count, tree, sender, receiver, &maker)
    export(count, tree, receiver)
  }

  private static func commit(by sender: Owner, _ sample: inout Sample, _ maker: inout MemberMaker) -> [UInt8]
  {
    timed(&sample) { must { try sender.group.commit(at: noon, using: &maker.random).commit.encoded() } }
  }

  /// One after the other: the group moves on, the tree keeps its shape.
  private mutating func commit(
    _ count: Int, _ tree: MLSRow.Tree, _ sender: Owner, _ receiver: Owner, _ maker: inout MemberMaker
  ) {
    let shape = TreeShape(sender.group.ratchetTree)
    let (from, to) = (Int(sender.group.ownLeaf.value), Int(receiver.group.ownLeaf.value))
    var unused = Sample()
    let bytes = Self.commit(by: sender, &unused, &maker).count
    sender.group.clearPendingCommit()

    var floor = shape.commit(by: from)
    floor.signatures = [leafBytes, bytes]
    row(.commit, count, tree, bytes: bytes, floor: floor) {
      sender.group.clearPendingCommit()
      var sample = Sample()
      _ = Self.commit(by: sender, &sample, &maker)
      return sample
    }
    sender.group.clearPendingCommit()
    var opening = shape.open(from: from, at: to)
    opening.verifications = [(leafBytes, 1), (bytes, 1)]
    row(.process, count, tree, bytes: bytes, floor: opening) {
      Self.process(from: sender, at: receiver, &maker)
    }
    if tree == .warm, count == 1_000 {
      let fields = CommitFields(
        identityByteCount: 5, groupIDByteCount: MemberMaker.groupID.count,
        pathNodes: shape.path(of: from).count, credentialTypes: 2)
      notes.commitSize = (count, fields.publicMessage, bytes)
    }
  }

  private static func process(from sender: Owner, at receiver: Owner, _ maker: inout MemberMaker) -> Sample {
    var (sample, unused) = (Sample(), Sample())
    let bytes = commit(by: sender, &unused, &maker)
    timed(&sample) { must { _ = try receiver.group.process(bytes, at: noon) } }
    must { _ = try sender.group.mergePendingCommit(at: noon) }
    return sample
  }

  private mutating func neighbours(
    _ count: Int, _ sender: Owner, _ receiver: Owner, _ maker: inout MemberMaker
  ) {
    let shape = TreeShape(sender.group.ratchetTree)
    var floor = shape.open(from: 0, at: 1)
    floor.verifications = [(leafBytes, 1), (1_500, 1)]
    let result = slicing.measure(
      ours: { Self.process(from: sender, at: receiver, &maker) }, floor: RawKeys(floor).run)
    notes.neighbour.append((count, result.us, result.floorUS))
  }

  private mutating func addOne(
    _ count: Int, _ tree: MLSRow.Tree, _ sender: Owner, _ maker: inout MemberMaker
  ) {
    let keyPackage = maker.joiners(1)[0].keyPackage.keyPackage
    var (commitBytes, welcomeBytes) = (0, 0)
    func add() -> Sample {
      var sample = Sample()
      sender.group.clearPendingCommit()
      timed(&sample) {
        let bundle = must { try sender.group.add([keyPackage], at: noon, using: &maker.random) }
        commitBytes = bundle.commit.encoded().count
        welcomeBytes = bundle.welcome?.encoded().count ?? 0
      }
      return sample
    }
    _ = add()
    let (grown, last) = TreeShape(sender.group.ratchetTree).adding()
    var floor = grown.commit(by: Int(sender.group.ownLeaf.value), adding: [last])
    floor.signatures = [leafBytes, commitBytes, welcomeBytes]
    floor.verifications = [(leafBytes, 1), (keyPackageBytes, 1)]
    row(.addOne, count, tree, bytes: commitBytes, floor: floor) { add() }
    sender.group.clearPendingCommit()
  }

  private mutating func messages(
    _ count: Int, _ tree: MLSRow.Tree, _ sender: Owner, _ receiver: Owner, _ maker: inout MemberMaker
  ) {
    let data = [UInt8](repeating: 0x5a, count: 100)
    func encrypt(_ sample: inout Sample) -> [UInt8] {
      timed(&sample) { must { try sender.group.encrypt(data, using: &maker.random).encoded() } }
    }
    var unused = Sample()
    let bytes = encrypt(&unused).count
    row(.encrypt, count, tree, bytes: bytes, floor: RawWork(signatures: [signedBytes])) {
      var sample = Sample()
      let message = encrypt(&sample)
      // A receiver that follows keeps no keys of messages that it missed.
      must { _ = try receiver.group.process(message, at: noon) }
      return sample
    }
    row(.decrypt, count, tree, bytes: bytes, floor: RawWork(verifications: [(signedBytes, 1)])) {
      var (sample, unused) = (Sample(), Sample())
      let message = encrypt(&unused)
      timed(&sample) { must { _ = try receiver.group.process(message, at: noon) } }
      return sample
    }
  }

  /// HMAC over a block and less: two compressions, and two to key it. Two of them, and the hash of the context.
  private mutating func export(_ count: Int, _ tree: MLSRow.Tree, _ owner: Owner) {
    row(.export, count, tree, bytes: 32, floor: RawWork(blocks: 2 * 4 + 1)) {
      var sample = Sample()
      _ = timed(&sample) {
        must { try owner.group.exportSecret(label: "palbe call media key", context: [], length: 32) }
      }
      return sample
    }
  }

  /// Bytes that a signature covers, roughly: Ed25519 hashes them, which is a hundredth of its work.
  private let leafBytes = 200
  private let keyPackageBytes = 270
  private let signedBytes = 300
}
