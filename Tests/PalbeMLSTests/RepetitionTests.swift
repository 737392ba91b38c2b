import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("What comes again, too early or too late")
struct RepetitionTests {
  private static let formats = [MLSConfiguration.HandshakeFormat.publicMessage, .privateMessage]

  private func configuration(_ format: MLSConfiguration.HandshakeFormat) -> MLSConfiguration {
    var result = MLSConfiguration()
    result.handshakeFormat = format
    return result
  }

  @Test("Every kind of message is a duplicate the second time, also epochs later", arguments: formats)
  func duplicates(format: MLSConfiguration.HandshakeFormat) throws {
    var group = try TestGroup(3, configuration(format))
    let data = try group.members[0].group.encrypt([1], using: &group.random)
    let proposal = try group.members[0].group.proposeRemove(LeafIndex(2), using: &group.random)
    let receiver = group.members[1]
    for message in [data, proposal] {
      _ = try receiver.process(message)
      #expect(try receiver.process(message) == .duplicate)
    }
    #expect(receiver.group.pendingProposals.count == 1)
    receiver.group.clearPendingProposals()
    group.members[0].group.clearPendingProposals()
    let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
    try group.deliver(bundle, from: 0)
    for _ in 0..<7 {
      for message in [data, proposal, bundle.commit] { #expect(try receiver.process(message) == .duplicate) }
      try group.update(by: 2)
    }
  }

  @Test("A changed copy of a message that was read is no duplicate, also where only the clear part changed")
  func changedCopy() throws {
    var group = try TestGroup(2)
    let message = try group.members[0].group.encrypt([1], authenticatedData: [1], using: &group.random)
    _ = try group.members[1].process(message)
    guard case .privateMessage(var changed) = message else {
      Issue.record("expected an encrypted message")
      return
    }
    changed.authenticatedData = [2]
    #expect(throws: MLSError.self) { try group.members[1].process(.privateMessage(changed)) }
    #expect(try group.members[1].process(message) == .duplicate)
  }

  @Test(
    "e2ee 6.18: own messages and commits are recognised when they come back, before and after the merge",
    arguments: formats)
  func own(format: MLSConfiguration.HandshakeFormat) throws {
    var group = try TestGroup(3, configuration(format))
    let sender = group.members[0]
    let data = try sender.group.encrypt([1], using: &group.random)
    let proposal = try sender.group.proposeUpdate(using: &group.random)
    sender.group.clearPendingProposals()
    #expect(try sender.process(data) == .own)
    #expect(try sender.process(proposal) == .own)
    let first = try sender.group.commit(at: noon, using: &group.random)
    #expect(try sender.process(first.commit) == .ownCommit(first.effect))
    #expect(try sender.process(first.commit) == .own)
    for index in 1..<3 { _ = try group.members[index].process(first.commit) }
    let second = try sender.group.commit(at: noon, using: &group.random)
    try sender.group.mergePendingCommit(at: noon)
    #expect(try sender.process(second.commit) == .own)
    for index in 1..<3 { _ = try group.members[index].process(second.commit) }
    try group.update(by: 2)
    for message in [data, proposal, first.commit, second.commit] {
      #expect(try sender.process(message) == .own)
    }
    try group.checkAgreement()
  }

  // Rules: V512
  @Test("Another message under a used key is no duplicate: somebody's state went back")
  func rollback() throws {
    var group = try TestGroup(2)
    let sender = group.members[0]
    let before = sender.group.state
    let first = try sender.group.encrypt([1], using: &group.random)
    sender.group.state = before
    let second = try sender.group.encrypt([2], using: &group.random)
    _ = try group.members[1].process(first)
    #expect(throws: MLSError.message(.generationUsed(0))) { try group.members[1].process(second) }
    #expect(try group.members[1].process(first) == .duplicate)
  }

  // Rules: V517
  @Test(
    "e2ee 6.23: a message of ours that this state never sent shows that it is an older copy; guards differ")
  func notSent() throws {
    var group = try TestGroup(2)
    let sender = group.members[0]
    let before = sender.group.state
    let first = try sender.group.encrypt([1], using: &group.random)
    let second = try sender.group.encrypt([1], using: &group.random)
    sender.group.state = before
    for (index, message) in [first, second].enumerated() {
      #expect(throws: MLSError.message(.notSentHere(generation: UInt32(index)))) {
        try sender.process(message)
      }
    }
    // Even so: the same key, but four fresh bytes in the nonce.
    let again = try sender.group.encrypt([1], using: &group.random)
    guard case .privateMessage(let one) = first, case .privateMessage(let two) = again else { return }
    #expect(one.ciphertext != two.ciphertext)
    let crypto = sender.client.crypto
    let guards = try [one, two].map { try before.epoch.keys.sender(of: $0, crypto: crypto) }
    #expect(guards[0].generation == guards[1].generation)
    #expect(guards[0].reuseGuard.count == 4 && guards[0].reuseGuard != guards[1].reuseGuard)
    #expect(try sender.process(again) == .own)
    try group.update(by: 1)
    #expect(throws: MLSError.message(.notSentHere(generation: 1))) { try sender.process(second) }
  }

  @Test("A forged copy hides no genuine message, and the memory is bounded")
  func memory() throws {
    var group = try TestGroup(2)
    let receiver = group.members[1]
    let message = try group.members[0].group.encrypt([1], using: &group.random)
    #expect(throws: MLSError.self) { try receiver.group.process(flip(message, at: 60), at: noon) }
    guard case .application = try receiver.process(message) else {
      Issue.record("expected application data")
      return
    }
    for number in 0..<1_100 {
      _ = try receiver.process(
        try group.members[0].group.encrypt([UInt8(number & 0xff)], using: &group.random))
    }
    let pages = receiver.group.state.seen.pages
    #expect(pages.count == SeenMessages.pageLimit)
    #expect(pages.allSatisfy { $0.entries.count <= 17 * 32 })
    #expect(throws: MLSError.message(.generationUsed(0))) { try receiver.process(message) }
    #expect(SeenMessages(pages: pages) == receiver.group.state.seen)
    #expect(SeenMessages(pages: pages.reversed()) == nil)
    #expect(SeenMessages(pages: [SeenMessages.Page(number: 0, entries: [0])]) == nil)
  }

  // MARK: FutureMessages

  @Test("RFC 9420 §14: what comes too early waits, and is processed by epoch, proposals before the commit")
  func future() throws {
    var group = try TestGroup(3, configuration(.publicMessage))
    let late = group.members[2]
    var sent: [MLSMessage] = []
    for epoch in 0..<5 {
      sent.append(try group.members[0].group.encrypt([UInt8(epoch)], using: &group.random))
      let proposal = try group.members[1].group.proposeUpdate(using: &group.random)
      _ = try group.members[0].process(proposal)
      let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
      try group.members[0].group.mergePendingCommit(at: noon)
      _ = try group.members[1].process(bundle.commit)
      sent += [proposal, bundle.commit]
    }
    var random = RandomSource(seed: 4)
    var waiting = FutureMessages()
    var data: [UInt8] = []
    for message in sent.reversed() + sent.shuffled(using: &random) {
      do { note(try late.process(message), &data) } catch MLSError.message(.futureEpoch) {
        _ = waiting.insert(message.encoded(), for: late.group)
        continue
      } catch MLSError.proposals(.unknownReference) { continue }
      while let result = late.group.processNext(of: &waiting, at: noon) { note(try result.get(), &data) }
    }
    #expect(data.sorted() == [0, 1, 2, 3, 4])
    #expect(waiting.count == 0 && waiting.byteCount == 0)
    try group.checkAgreement()
  }

  private func note(_ message: ProcessedMessage, _ data: inout [UInt8]) {
    if case .application(let message) = message { data += message.data }
  }

  @Test("e2ee 6.28: forged epochs wait in bounded memory, make nobody commit, and give way to nearer ones")
  func forged() throws {
    var group = try TestGroup(2)
    let receiver = group.members[1]
    let authenticator = receiver.group.epochAuthenticator
    guard case .privateMessage(let genuine) = try group.members[0].group.encrypt([1], using: &group.random)
    else { return }
    func forged(_ epoch: UInt64, _ byte: UInt8 = 0, _ type: ContentType = .application) -> [UInt8] {
      var message = genuine
      message.epoch = epoch
      message.contentType = type
      message.ciphertext[0] ^= byte
      return MLSMessage.privateMessage(message).encoded()
    }
    var waiting = FutureMessages(maximumCount: 3, maximumByteCount: 10_000, maximumDistance: 100)
    for epoch in [2, 1_000, UInt64.max] {
      #expect(throws: MLSError.message(.futureEpoch(epoch: epoch))) {
        try receiver.group.process(forged(epoch), at: noon)
      }
    }
    #expect(waiting.insert(forged(1), for: receiver.group) == .refused, "not in the future")
    #expect(waiting.insert(forged(102), for: receiver.group) == .refused, "too far")
    #expect(waiting.insert([1, 2, 3], for: receiver.group) == .refused)
    for epoch: UInt64 in [9, 8, 7] { #expect(waiting.insert(forged(epoch), for: receiver.group) == .kept) }
    #expect(waiting.insert(forged(7), for: receiver.group) == .duplicate)
    #expect(waiting.insert(forged(9, 1), for: receiver.group) == .refused, "no room among as far ones")
    #expect(waiting.insert(forged(2), for: receiver.group) == .kept, "a nearer one has it")
    #expect(waiting.count == 3)
    #expect(waiting.byteCount <= 10_000)
    var small = FutureMessages(maximumCount: 100, maximumByteCount: 2 * forged(2).count)
    for number: UInt8 in 1...5 { _ = small.insert(forged(5, number, .commit), for: receiver.group) }
    #expect(small.count == 2)
    #expect(small.insert(forged(5, 9), for: receiver.group) == .kept, "data comes before commits")
    #expect(small.count == 2)
    small.removeAll()
    #expect(small.byteCount == 0 && small.next(upTo: UInt64.max) == nil)
    // Nothing of it changed the group or made it want to commit.
    #expect(receiver.group.epochAuthenticator == authenticator)
    let isIdle = !receiver.group.hasPendingCommit && receiver.group.pendingProposals.isEmpty
    #expect(isIdle)
    try group.update(by: 0)
    guard case .failure = receiver.group.processNext(of: &waiting, at: noon) else {
      Issue.record("a forged message was accepted")
      return
    }
    let none = receiver.group.processNext(of: &waiting, at: noon) == nil
    #expect(none, "the others wait for their epochs")
    try group.checkAgreement()
  }

  @Test(
    "e2ee 6.21: a queue is processed whole before anything is committed: the engine never commits by itself")
  func catchUp() throws {
    var group = try TestGroup(3)
    let late = group.members[2]
    var queue: [MLSMessage] = []
    let update = try group.members[1].group.proposeUpdate(using: &group.random)
    _ = try group.members[0].process(update)
    queue.append(update)
    queue.append(try group.members[1].group.encrypt([1], using: &group.random))
    let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
    try group.members[0].group.mergePendingCommit(at: noon)
    _ = try group.members[1].process(bundle.commit)
    queue.append(bundle.commit)
    queue.append(try group.members[1].group.encrypt([2], using: &group.random))
    // Whatever the hour is: no timer of the engine's own.
    let muchLater = noon + 3_600 * 24 * 3
    var data: [UInt8] = []
    for (index, message) in queue.enumerated() {
      if index == 1 { #expect(late.group.pendingProposals.count == 1) }
      let isIdle = !late.group.hasPendingCommit
      #expect(isIdle)
      note(try late.process(message, at: muchLater), &data)
    }
    #expect(data == [1, 2])
    #expect(late.group.pendingProposals.isEmpty, "somebody else committed what waited")
    try group.checkAgreement()
  }
}
