import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits
import Testing

@Suite("Messages, queues, cursors, blobs, key packages")
struct MessageTests {
  private func pair() throws -> (Rig<MemoryStore>, Caller, Caller, GroupID) {
    let rig = try Rig(MemoryStore())
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.drain(ben)
    return (rig, anna, ben, group)
  }

  @Test("Sequences are dense; a repeated message gets the first receipt, whatever happened since")
  func repeated() throws {
    let (rig, anna, ben, group) = try pair()
    let message = try rig.message(group, anna)
    #expect(try rig.ask(.send(group, message), anna) == .accepted(sequence: 2, epoch: 1, isRepeated: false))
    for _ in 0..<4 { try rig.ask(.commit(group, try rig.bundle(group, by: ben)), ben) }
    #expect(try rig.ask(.send(group, message), anna) == .accepted(sequence: 2, epoch: 1, isRepeated: true))
    #expect(try rig.send(group, anna) == 7)
    // The name is the sender's own.
    var theirs = try rig.message(group, ben)
    theirs.id = message.id
    #expect(try rig.ask(.send(group, theirs), ben) == .accepted(sequence: 8, epoch: 5, isRepeated: false))
    let other = try rig.found(by: anna)
    var moved = try rig.message(other, anna)
    moved.id = message.id
    #expect(rig.refusal(.send(other, moved), anna) == .invalidRequest(.identifier))
  }

  @Test("2.2 duplicate_message: encrypted anew, a message gets the first receipt and is there once")
  func encryptedAnew() throws {
    let (rig, anna, ben, group) = try pair()
    let message = try rig.message(group, anna)
    try rig.ask(.send(group, message), anna)
    try rig.ask(.commit(group, try rig.bundle(group, by: ben)), ben)
    var again = try rig.message(group, anna)
    again.id = message.id
    #expect(again.blob != message.blob && again.epoch == 2)
    #expect(try rig.ask(.send(group, again), anna) == .accepted(sequence: 2, epoch: 1, isRepeated: true))
    let blobs = try rig.queue(ben).compactMap {
      if case .message(_, let row) = $0.content { row.blob } else { nil }
    }
    #expect(blobs == [message.blob])
    #expect(try rig.send(group, anna) == 4)
  }

  @Test("Bug: a message's idempotency key had no effect (4.2: on all POSTs)")
  func keyed() throws {
    let (rig, anna, ben, group) = try pair()
    func key(_ name: UInt8, _ digest: UInt8) -> IdempotencyKey {
      IdempotencyKey(key: [name], digest: [digest])
    }
    let message = try rig.message(group, anna)
    let first = BackendResponse.accepted(sequence: 2, epoch: 1, isRepeated: false)
    #expect(try rig.ask(.send(group, message), anna, key: key(1, 1)) == first)
    #expect(try rig.ask(.send(group, message), anna, key: key(1, 1)) == first)
    let other = try rig.message(group, anna)
    #expect(throws: BackendFailure.idempotencyMismatch) {
      try rig.ask(.send(group, other), anna, key: key(1, 2))
    }
    // The message's own name holds under any key.
    #expect(
      try rig.ask(.send(group, message), anna, key: key(2, 1))
        == .accepted(sequence: 2, epoch: 1, isRepeated: true))
    // One for who is connected goes out once.
    var live = try rig.message(group, anna)
    live.isEphemeral = true
    let mlsID = try rig.view(group, ben).summary.mlsID
    try rig.ask(.subscribe(ConnectionID(1), .conversation(mlsID)), ben)
    _ = rig.events()
    let passed = BackendResponse.accepted(sequence: 0, epoch: 1, isRepeated: false)
    for _ in 0..<2 { #expect(try rig.ask(.send(group, live), anna, key: key(3, 1)) == passed) }
    #expect(rig.events().count == 1)
    #expect(throws: BackendFailure.idempotencyMismatch) {
      try rig.ask(.send(group, live), anna, key: key(3, 2))
    }
    // After a day the key is free, and the name is not.
    rig.advance(by: .days(1))
    #expect(
      try rig.ask(.send(group, message), anna, key: key(1, 3))
        == .accepted(sequence: 2, epoch: 1, isRepeated: true))
    #expect(try rig.queue(ben).count == 1)
  }

  @Test("4.2: messages of the newest epoch and the three before it are taken")
  func epochs() throws {
    let (rig, anna, ben, group) = try pair()
    for _ in 0..<5 { try rig.ask(.commit(group, try rig.bundle(group, by: anna)), anna) }
    for epoch in 0...8 as ClosedRange<Epoch> {
      let refusal = rig.refusal(.send(group, try rig.message(group, ben, epoch: epoch)), ben)
      #expect(refusal == (3...6 ~= epoch ? nil : .staleEpoch(head: 6)), "epoch \(epoch)")
    }
  }

  @Test("A message that is none, of another group, or too large is refused")
  func malformed() throws {
    let (rig, anna, _, group) = try pair()
    let good = try rig.message(group, anna)
    func refused(_ expected: BackendFailure, _ change: (inout OutgoingMessage) -> Void) {
      var message = good
      change(&message)
      #expect(rig.refusal(.send(group, message), anna) == expected)
    }
    refused(.invalidRequest(.message)) { $0.blob = [] }
    refused(.invalidRequest(.message)) { $0.blob = Wire.application(rig.newMLSID(), 1, []) }
    refused(.invalidRequest(.message)) { $0.epoch = 0 }
    refused(.invalidRequest(.message)) { $0.blob = Wire.welcome([]) }
    let id = try rig.view(group, anna).summary.mlsID
    refused(.invalidRequest(.message)) { $0.blob = Wire.commit(id, 1, []) }
    refused(.messageTooLarge(limit: 256 << 10)) { $0.blob += [UInt8](repeating: 0, count: 256 << 10) }
    for count in 0..<38 { refused(.invalidRequest(.message)) { $0.blob = Array($0.blob[..<count]) } }
    refused(.invalidRequest(.message)) {
      $0.blob = Wire.proposal(id, 1, [])
      $0.isEphemeral = true
    }
    let largest = 256 << 10
    var message = good
    message.blob += [UInt8](repeating: 0, count: largest - message.blob.count)
    #expect(rig.refusal(.send(group, message), anna) == nil)
  }

  @Test("Rows come again until they are acknowledged, in order, in pages; only the named ones go")
  func redelivery() throws {
    let (rig, anna, ben, group) = try pair()
    for _ in 0..<7 { try rig.send(group, anna) }
    let rows = try rig.queue(ben, page: 3)
    #expect(try rig.queue(ben) == rows)
    #expect(rows.map(\.id) == rows.map(\.id).sorted() && Set(rows.map(\.id)).count == 7)
    #expect(
      rows.map(\.content).compactMap { if case .message(_, let row) = $0 { row.sequence } else { nil } }
        == Array(2...8 as ClosedRange<LogSequence>))
    let some = Acknowledgement.listed([rows[1].id, rows[4].id, QueueID(5)])
    #expect(try rig.ask(.acknowledge(some, connection: nil), ben) == .acknowledged(count: 2))
    #expect(try rig.queue(ben) == [rows[0], rows[2], rows[3], rows[5], rows[6]])
    #expect(
      try rig.ask(.acknowledge(.upTo(rows[3].id), connection: nil), ben) == .acknowledged(count: 3))
    #expect(try rig.queue(ben) == [rows[5], rows[6]])
    // Another device's queue is its own.
    #expect(try rig.ask(.acknowledge(.upTo(QueueID(.max)), connection: nil), anna) == .acknowledged(count: 0))
    #expect(try rig.queue(ben).count == 2)
  }

  @Test("An answer's rows are bounded in bytes")
  func pageBytes() throws {
    var limits = BackendLimits()
    limits.pageByteCount = 500
    let rig = try Rig(MemoryStore(), limits: limits)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    for _ in 0..<9 { try rig.send(group, anna) }
    guard
      case .queue(let rows, let hasMore) = try rig.ask(
        .fetchQueue(after: .start, limit: 100, connection: nil), ben)
    else { throw Rig<MemoryStore>.Unexpected() }
    #expect(rows.count == 3 && hasMore)
    #expect(try rig.queue(ben).count == 10)
  }

  @Test("4.2: the newer connection consumes a device's queue alone, and the older is told")
  func consumer() throws {
    let (rig, anna, ben, group) = try pair()
    try rig.send(group, anna)
    let (old, new) = (ConnectionID(1), ConnectionID(2))
    let topic = TopicName.device(ben.device!)
    func fetch(_ connection: ConnectionID?) -> BackendFailure? {
      rig.refusal(.fetchQueue(after: .start, limit: 9, connection: connection), ben)
    }
    #expect(fetch(old) == .superseded)
    try rig.ask(.subscribe(old, topic), ben)
    #expect(fetch(old) == nil)
    // In one batch, a request sees what the one before it did.
    let results = rig.backend.handle(
      [
        BackendCall(.subscribe(new, topic), from: ben),
        BackendCall(.acknowledge(.upTo(QueueID(.max)), connection: old), from: ben),
        BackendCall(.fetchQueue(after: .start, limit: 9, connection: new), from: ben),
      ], at: rig.now)
    #expect(results[1] == .failure(.superseded))
    #expect(rig.events() == [.subscriptionEnded(old, .device(ben.device!), .superseded)])
    #expect(fetch(old) == .superseded && fetch(new) == nil && fetch(nil) == nil)
    #expect(rig.backend.subscribers(of: .device(ben.device!)) == [new])
    try rig.send(group, anna)
    #expect(rig.events() == [.publish(.device(ben.device!), .queueChanged)])
    rig.backend.connectionClosed(new)
    #expect(fetch(new) == .superseded)
  }

  @Test("S0-90: unread counts what was sent to wake, is monotonic, and ends at zero")
  func unread() throws {
    let (rig, anna, ben, group) = try pair()
    func unread(_ who: Caller) throws -> UnreadView {
      guard case .unread(let view) = try rig.ask(.unread(group), who) else {
        throw Rig<MemoryStore>.Unexpected()
      }
      return view
    }
    #expect(try unread(ben).unreadCount == 0)
    for _ in 0..<3 { try rig.send(group, anna) }
    try rig.send(group, anna, wakes: false)
    #expect(
      try unread(ben)
        == UnreadView(groupMaxSequence: 5, lastReadSequence: 1, deliveredSequence: 0, unreadCount: 3))
    try rig.drain(ben)
    try rig.ask(.markRead(group, 3), ben)
    #expect(try unread(ben).deliveredSequence == 5)
    #expect(try unread(ben).unreadCount == 1)
    try rig.ask(.markRead(group, 2), ben)
    #expect(try unread(ben).lastReadSequence == 3)
    try rig.ask(.markRead(group, 99), ben)
    #expect(try unread(ben).lastReadSequence == 5 && unread(ben).unreadCount == 0)
    #expect(rig.refusal(.markRead(group, -1), ben) == .invalidRequest(.range))
    // Who comes later has nothing unread.
    let carl = try rig.enrol()
    try rig.ask(.commit(group, try rig.bundle(group, by: anna, adding: [carl.user])), anna)
    #expect(try unread(carl).unreadCount == 0)
  }

  @Test("Key packages are consumed once each; the last resort stays, and is flagged")
  func keyPackages() throws {
    let rig = try Rig(MemoryStore())
    let (anna, ben) = (try rig.enrol(), try rig.enrol(packages: 2))
    func claim() throws -> ClaimedKeyPackage? {
      guard case .keyPackages(let packages, []) = try rig.ask(.claimKeyPackages(of: ben.user), anna) else {
        return nil
      }
      return packages.first
    }
    let claimed = try (0..<4).map { _ in try claim() }
    #expect(claimed.map { $0?.isLastResort } == [false, false, true, true])
    #expect(Set(claimed.map { $0?.blob }).count == 3)
    #expect(
      try rig.ask(.keyPackageCount, ben) == .keyPackageCount(KeyPackageCount(count: 0, hasLastResort: true)))
    // One that was used is not taken again; nor are those that are not the device's or not valid.
    #expect(
      rig.refusal(.publishKeyPackages([claimed[0]!.blob], lastResort: nil), ben)
        == .invalidRequest(.keyPackage))
    guard case .devices(let devices) = try rig.ask(.devices, ben) else { return }
    let key = devices[0].signatureKey
    let bad: [[UInt8]] = [
      rig.package([1, 2, 3], of: ben), rig.package(key, of: ben, isLastResort: true),
      rig.package(key, of: ben, days: -1), [], [1],
    ]
    for package in bad {
      #expect(
        rig.refusal(.publishKeyPackages([rig.package(key, of: ben), package], lastResort: nil), ben)
          == .invalidRequest(.keyPackage))
    }
    let big = rig.package(key, of: ben) + [UInt8](repeating: 0, count: 16 << 10)
    #expect(
      rig.refusal(.publishKeyPackages([big], lastResort: nil), ben) == .messageTooLarge(limit: 16 << 10))
    #expect(
      rig.refusal(.publishKeyPackages((0..<201).map { _ in rig.package(key, of: ben) }, lastResort: nil), ben)
        == .invalidRequest(.tooMany))
    // A refused request left nothing.
    #expect(
      try rig.ask(.publishKeyPackages([], lastResort: rig.package(key, of: ben, isLastResort: true)), ben)
        == .keyPackageCount(KeyPackageCount(count: 0, hasLastResort: true)))
    #expect(try claim()?.blob != claimed[3]?.blob)
    rig.advance(by: .seconds(91 * 86_400))
    #expect(rig.refusal(.claimKeyPackages(of: ben.user), anna) == .noKeyPackage(ben.user))
  }

  @Test("Bug: one user could claim all key packages of another, who then had none for anybody else")
  func drained() throws {
    let rig = try Rig(MemoryStore())
    let (anna, ben) = (try rig.enrol(), try rig.enrol(packages: 30))
    func claim(_ asker: Caller) throws -> Bool? {
      guard case .keyPackages(let packages, []) = try rig.ask(.claimKeyPackages(of: ben.user), asker) else {
        return nil
      }
      return packages.first?.isLastResort
    }
    func left() throws -> Int? {
      guard case .keyPackageCount(let count) = try rig.ask(.keyPackageCount, ben) else { return nil }
      return count.count
    }
    let tablet = try rig.enrol(anna.user)
    // Ten at once, by whichever device; then those for last resort, which hold for a conversation too.
    let claims = try (0..<40).map { try claim($0.isMultiple(of: 2) ? anna : tablet) }
    #expect(claims == Array(repeating: false, count: 10) + Array(repeating: true, count: 30))
    #expect(try left() == 20)
    // Nobody else feels it.
    #expect(try claim(try rig.enrol()) == false)
    rig.advance(by: .seconds(600))
    #expect(try claim(anna) == false && claim(anna) == true)
    // Without one for last resort, it is too many.
    let bare = try rig.enrol(packages: 20, lastResort: false)
    for _ in 0..<10 { #expect(rig.refusal(.claimKeyPackages(of: bare.user), anna) == nil) }
    guard case .rateLimited(let wait)? = rig.refusal(.claimKeyPackages(of: bare.user), anna) else {
      Issue.record("not limited")
      return
    }
    #expect(wait > .seconds(590) && wait <= .seconds(600))
  }

  @Test("A claim under a key is answered with the same packages")
  func repeatedClaim() throws {
    let rig = try Rig(MemoryStore())
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let key = IdempotencyKey(key: [1], digest: [1])
    let first = try rig.ask(.claimKeyPackages(of: ben.user), anna, key: key)
    #expect(try rig.ask(.claimKeyPackages(of: ben.user), anna, key: key) == first)
    #expect(
      try rig.ask(.keyPackageCount, ben) == .keyPackageCount(KeyPackageCount(count: 3, hasLastResort: true)))
  }

  @Test("Enrolling again is the same device; an id of somebody else is refused")
  func enrolling() throws {
    let rig = try Rig(MemoryStore())
    let user = rig.newUser()
    let enrolment = rig.enrolment(of: user)
    let device = enrolment.device!
    let caller = Caller(user: user, device: nil)
    #expect(try rig.ask(.enrolDevice(enrolment), caller) == .enrolled(device))
    #expect(try rig.ask(.enrolDevice(enrolment), caller) == .enrolled(device))
    #expect(
      rig.refusal(.enrolDevice(enrolment), Caller(user: rig.newUser(), device: nil))
        == .invalidRequest(.identifier))
    try rig.ask(.revokeDevice(device), Caller(user: user, device: device))
    #expect(rig.refusal(.enrolDevice(enrolment), caller) == .deviceRevoked)
    for _ in 0..<32 { _ = try rig.enrol(user) }
    #expect(rig.refusal(.enrolDevice(rig.enrolment(of: user)), caller) == .invalidRequest(.tooMany))
  }

  @Test("Blobs: pending until complete, for members, until they expire")
  func blobs() throws {
    let (rig, anna, ben, group) = try pair()
    func blob(_ request: BackendRequest, _ caller: Caller) throws -> BlobView {
      guard case .blob(let view) = try rig.ask(request, caller) else { throw Rig<MemoryStore>.Unexpected() }
      return view
    }
    #expect(rig.refusal(.createBlob(group, byteCount: 0), anna) == .invalidRequest(.range))
    #expect(
      rig.refusal(.createBlob(group, byteCount: 2 << 30 + 1), anna) == .attachmentTooLarge(limit: 2 << 30))
    let made = try blob(.createBlob(group, byteCount: 2 << 30), anna)
    #expect(made.state == .pending && made.expiresAt > rig.now.wall)
    #expect(rig.refusal(.blob(made.id), ben) == .blobNotFound)
    #expect(rig.refusal(.completeBlob(made.id), ben) == .forbidden)
    #expect(try blob(.completeBlob(made.id), anna).state == .ready)
    #expect(try blob(.completeBlob(made.id), anna) == blob(.blob(made.id), ben))
    #expect(rig.refusal(.blob(made.id), try rig.enrol()) == .blobNotFound)
    let late = try blob(.createBlob(group, byteCount: 5), anna)
    rig.advance(by: .seconds(901))
    #expect(rig.refusal(.completeBlob(late.id), anna) == .blobExpired)
    _ = rig.events()
    rig.advance(by: .seconds(7_200))
    #expect(rig.events() == [.deleteBlobs([late.id])])
    rig.advance(by: .seconds(30 * 86_400))
    #expect(rig.events() == [.deleteBlobs([made.id])])
    #expect(rig.refusal(.blob(made.id), ben) == .blobNotFound)
  }

  @Test("2.9i: what nobody fetched for 30 days becomes one gap for each group")
  func retention() throws {
    let (rig, anna, ben, group) = try pair()
    for _ in 0..<3 { try rig.send(group, anna) }
    rig.advance(by: .seconds(29 * 86_400))
    try rig.send(group, anna)
    #expect(try rig.queue(ben).count == 4)
    rig.advance(by: .seconds(2 * 86_400))
    let rows = try rig.queue(ben)
    #expect(rows.count == 2 && rows.last?.content == .control(.historyGap(group)))
    rig.advance(by: .seconds(3 * 86_400))
    guard case .commits(let commits) = try rig.ask(.commits(group, from: 0, limit: 9), anna) else { return }
    #expect(commits.isEmpty)
    // The epoch's winner is still known, and new ones go on.
    try rig.ask(.commit(group, try rig.bundle(group, by: anna)), anna)
    #expect(try rig.view(group, anna).summary.headSequence == 6)
  }

  @Test("A wall clock that jumps drops nothing, and queues stay in order")
  func clockJumps() throws {
    let (rig, anna, ben, group) = try pair()
    try rig.send(group, anna)
    rig.jump(by: .seconds(365 * 86_400))
    rig.advance(by: .seconds(7_200))
    try rig.send(group, anna)
    rig.jump(by: .seconds(-2 * 365 * 86_400))
    rig.advance(by: .seconds(7_200))
    try rig.send(group, anna)
    let rows = try rig.queue(ben)
    #expect(
      rows.compactMap { if case .message(_, let row) = $0.content { row.sequence } else { nil } } == [
        2, 3, 4,
      ] as [LogSequence])
  }
}
