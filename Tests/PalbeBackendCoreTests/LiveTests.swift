import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits
import Testing

@Suite("Live: wakes, presence, typing, receipts, subscriptions")
struct LiveTests {
  private let one = ConnectionID(1)
  private let two = ConnectionID(2)

  private func pair() throws -> (Rig<MemoryStore>, Caller, Caller, GroupID, TopicName) {
    let rig = try Rig(MemoryStore())
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.drain(ben)
    for caller in [anna, ben] { try rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [7])), caller) }
    rig.advance(by: .seconds(10))
    _ = rig.events()
    return (rig, anna, ben, group, .conversation(try rig.view(group, anna).summary.mlsID))
  }

  @Test("2.11: a row that wakes and stays for 2 s wakes once for its group, also with a socket open")
  func wakes() throws {
    let (rig, anna, ben, group, _) = try pair()
    try rig.ask(.subscribe(one, .device(ben.device!)), ben)
    for _ in 0..<5 { try rig.send(group, anna) }
    rig.advance(by: .milliseconds(1_900))
    #expect(rig.pushes() == [])
    rig.advance(by: .milliseconds(200))
    let push = WakePush(
      device: ben.device!, group: group, kind: .message, tokens: [PushToken(platform: .ios, bytes: [7])])
    #expect(rig.pushes() == [push])
    rig.advance(by: .seconds(600))
    #expect(rig.pushes() == [])
    try rig.send(group, anna)
    rig.advance(by: .seconds(3))
    #expect(rig.pushes() == [push])
  }

  @Test("What is acknowledged in time, silent, muted or without a token wakes nobody")
  func noWakes() throws {
    let (rig, anna, ben, group, _) = try pair()
    try rig.send(group, anna)
    let rows = try rig.queue(ben)
    try rig.ask(.acknowledge(.listed(rows.map(\.id)), connection: nil), ben)
    try rig.send(group, anna, wakes: false)
    rig.advance(by: .seconds(5))
    #expect(rig.pushes() == [])
    try rig.drain(ben)
    // Two of a span, acknowledged one by one.
    for _ in 0..<2 { try rig.send(group, anna) }
    for row in try rig.queue(ben) { try rig.ask(.acknowledge(.listed([row.id]), connection: nil), ben) }
    rig.advance(by: .seconds(5))
    #expect(rig.pushes() == [])
    try rig.ask(.setNotifyScope(group, .none), ben)
    #expect(try rig.ask(.notifyScope(group), ben) == .notifyScope(.none))
    try rig.send(group, anna)
    rig.advance(by: .seconds(5))
    #expect(rig.pushes() == [])
    let carl = try rig.enrol()
    try rig.ask(.commit(group, try rig.bundle(group, by: anna, adding: [carl.user])), anna)
    rig.advance(by: .seconds(5))
    #expect(rig.pushes() == [])
    // A welcome wakes in any case: there was no group to mute.
    try rig.ask(.setPushToken(PushToken(platform: .iosVoIP, bytes: [8])), ben)
    _ = try rig.found(by: anna, with: [ben.user])
    rig.advance(by: .seconds(5))
    #expect(rig.pushes().map(\.kind) == [.welcome])
  }

  @Test("After a restart, rows nobody was woken for wake; the others do not again")
  func restart() throws {
    let (rig, anna, ben, group, _) = try pair()
    try rig.send(group, anna)
    rig.advance(by: .seconds(3))
    #expect(rig.pushes().count == 1)
    let other = try rig.found(by: ben, with: [anna.user])
    try rig.drain(anna)
    rig.advance(by: .seconds(3))
    _ = rig.events()
    try rig.send(other, anna)
    let again = try Rig(rig.backend.finish(), at: rig.now)
    again.advance(by: .seconds(1))
    #expect(again.pushes() == [])
    again.advance(by: .seconds(2))
    #expect(again.pushes().map(\.group) == [other])
    again.advance(by: .seconds(60))
    #expect(again.pushes() == [])
  }

  @Test("S0-98, 4.3: presence is a lease of 60 s that a heartbeat renews")
  func presence() throws {
    let (rig, anna, ben, group, topic) = try pair()
    try rig.ask(.subscribe(one, topic), anna)
    #expect(rig.events() == [.publish(.conversation(group), .presence(anna.user, isOnline: true))])
    guard case .subscribed(group, let online, _) = try rig.ask(.subscribe(two, topic), ben) else {
      throw Rig<MemoryStore>.Unexpected()
    }
    #expect(online == [anna.user])
    for _ in 0..<4 {
      rig.advance(by: .seconds(25))
      try rig.ask(.heartbeat(one), anna)
    }
    #expect(
      rig.events() == [
        .publish(.conversation(group), .presence(ben.user, isOnline: true)),
        .publish(.conversation(group), .presence(ben.user, isOnline: false)),
      ])
    try rig.ask(.heartbeat(two), ben)
    rig.backend.connectionClosed(two)
    #expect(
      rig.events() == [
        .publish(.conversation(group), .presence(ben.user, isOnline: true)),
        .publish(.conversation(group), .presence(ben.user, isOnline: false)),
      ])
    rig.advance(by: .seconds(61))
    #expect(rig.events() == [.publish(.conversation(group), .presence(anna.user, isOnline: false))])
  }

  @Test("S0-98, section 3, 38: typing lapses after 6 s, and ends with its connection")
  func typing() throws {
    let (rig, anna, ben, group, topic) = try pair()
    try rig.ask(.subscribe(one, topic), anna)
    try rig.ask(.subscribe(two, topic), ben)
    _ = rig.events()
    let on = BackendEvent.publish(.conversation(group), .typing(anna.user, anna.device!, true))
    let off = BackendEvent.publish(.conversation(group), .typing(anna.user, anna.device!, false))
    for _ in 0..<3 {
      try rig.ask(.setTyping(one, group, true), anna)
      rig.advance(by: .seconds(3))
    }
    #expect(rig.events() == [on, on, on])
    rig.advance(by: .seconds(4))
    #expect(rig.events() == [off])
    try rig.ask(.setTyping(one, group, true), anna)
    try rig.ask(.setTyping(one, group, false), anna)
    try rig.ask(.setTyping(one, group, false), anna)
    #expect(rig.events() == [on, off])
    try rig.ask(.setTyping(one, group, true), anna)
    rig.backend.connectionClosed(one)
    #expect(rig.events().prefix(2) == [on, off])
  }

  @Test("S0-101: who hides presence is neither online nor typing to others, at once")
  func hiding() throws {
    let (rig, anna, ben, group, topic) = try pair()
    try rig.ask(.subscribe(one, topic), anna)
    try rig.ask(.subscribe(two, topic), ben)
    try rig.ask(.setTyping(one, group, true), anna)
    _ = rig.events()
    #expect(
      try rig.ask(.setCommsPrefs(sharePresence: false, shareReceipts: nil), anna)
        == .commsPrefs(CommsPrefs(sharePresence: false, shareReceipts: true)))
    #expect(
      rig.events() == [
        .publish(.conversation(group), .typing(anna.user, anna.device!, false)),
        .publish(.conversation(group), .presence(anna.user, isOnline: false)),
      ])
    try rig.ask(.setTyping(one, group, true), anna)
    try rig.ask(.heartbeat(one), anna)
    let again = ConnectionID(3)
    try rig.ask(.subscribe(again, topic), anna)
    #expect(rig.events() == [])
    try rig.ask(.setCommsPrefs(sharePresence: true, shareReceipts: nil), anna)
    #expect(rig.events() == [.publish(.conversation(group), .presence(anna.user, isOnline: true))])
  }

  @Test(
    "S0-102, section 3, 36: read is told only by who shares it, from the first message on; delivered always")
  func receipts() throws {
    let (rig, anna, ben, group, topic) = try pair()
    let tablet = try rig.enrol(ben.user)
    try rig.ask(.subscribe(one, topic), anna)
    try rig.ask(.subscribe(two, .device(tablet.device!)), tablet)
    for _ in 0..<2 { try rig.send(group, anna) }
    _ = rig.events()
    try rig.drain(ben)
    #expect(rig.events() == [.publish(.conversation(group), .delivered(ben.user, ben.device!, 3))])
    try rig.ask(.markRead(group, 2), ben)
    #expect(
      rig.events() == [
        .publish(.conversation(group), .read(ben.user, 2)),
        .publish(.device(tablet.device!), .ownRead(group, 2)),
      ])
    try rig.ask(.setCommsPrefs(sharePresence: nil, shareReceipts: false), ben)
    try rig.ask(.markRead(group, 3), ben)
    #expect(rig.events() == [.publish(.device(tablet.device!), .ownRead(group, 3))])
  }

  @Test("4.3: a subscription needs membership, and ends with it; so does a revoked device's connection")
  func membership() throws {
    let (rig, anna, ben, group, topic) = try pair()
    let stranger = try rig.enrol()
    #expect(rig.refusal(.subscribe(one, topic), stranger) == .chatNotFound)
    #expect(rig.refusal(.subscribe(one, .device(ben.device!)), anna) == .forbidden)
    try rig.ask(.subscribe(one, topic), anna)
    try rig.ask(.subscribe(two, topic), ben)
    #expect(rig.refusal(.subscribe(one, topic), ben) == .invalidRequest(.identifier))
    try rig.ask(.commit(group, try rig.bundle(group, by: anna, removing: [ben.user])), anna)
    #expect(rig.events().contains(.subscriptionEnded(two, .conversation(group), .notAMember)))
    #expect(rig.backend.subscribers(of: .conversation(group)) == [one])
    #expect(rig.refusal(.subscribe(two, topic), ben) == .notAMember)
    #expect(rig.refusal(.setTyping(two, group, true), ben) == .notAMember)
    let tablet = try rig.enrol(anna.user)
    try rig.ask(.subscribe(ConnectionID(3), .device(anna.device!)), anna)
    try rig.ask(.revokeDevice(anna.device!), tablet)
    let ended = rig.events().filter { if case .subscriptionEnded = $0 { true } else { false } }
    #expect(
      ended == [
        .subscriptionEnded(one, .conversation(group), .deviceRevoked),
        // Also where it did not hear the device's topic: it is the end of the connection.
        .subscriptionEnded(one, .device(anna.device!), .deviceRevoked),
        .subscriptionEnded(ConnectionID(3), .device(anna.device!), .deviceRevoked),
      ])
    #expect(rig.backend.subscribers(of: .conversation(group)) == [])
  }

  @Test("A reset ends the subscriptions under the old MLS id")
  func reset() throws {
    let (rig, anna, ben, group, topic) = try pair()
    try rig.ask(.subscribe(one, topic), ben)
    var founding = try rig.founding(by: anna, with: [ben.user])
    founding.commit?.delta.addedUsers = []
    try rig.ask(.reset(group, generation: 0, founding), anna)
    #expect(rig.events().contains(.subscriptionEnded(one, .conversation(group), .groupReset)))
    #expect(rig.refusal(.subscribe(one, topic), ben) == .chatNotFound)
    #expect(rig.refusal(.subscribe(one, .conversation(founding.mlsID)), ben) == nil)
  }

  @Test("An ephemeral message goes to who listens, and nowhere else")
  func ephemeral() throws {
    let (rig, anna, ben, group, topic) = try pair()
    try rig.ask(.subscribe(one, topic), ben)
    _ = rig.events()
    let message = try rig.message(group, anna, isEphemeral: true)
    #expect(try rig.ask(.send(group, message), anna) == .accepted(sequence: 0, epoch: 1, isRepeated: false))
    #expect(
      rig.events() == [
        .publish(.conversation(group), .ephemeral(sender: anna.device!, epoch: 1, blob: message.blob))
      ])
    #expect(try rig.queue(ben) == [])
    #expect(try rig.view(group, anna).summary.headSequence == 1)
    try rig.ask(.unsubscribe(one, topic), ben)
    try rig.ask(.send(group, try rig.message(group, anna, isEphemeral: true)), anna)
    #expect(rig.events() == [])
  }

  @Test("2.2: a device that asks too fast is told how long to wait; others and its later requests are served")
  func rates() throws {
    var limits = BackendLimits()
    limits.requestsPerSecond = 10
    limits.requestBurst = 30
    let rig = try Rig(MemoryStore(), limits: limits)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let now = rig.now
    let results = rig.backend.handle((0..<40).map { _ in BackendCall(.devices, from: anna) }, at: now)
    #expect(results.prefix(30).allSatisfy { if case .success = $0 { true } else { false } })
    #expect(
      results.dropFirst(30).allSatisfy { $0 == .failure(.rateLimited(retryAfter: .milliseconds(100))) })
    #expect(rig.refusal(.devices, ben) == nil)
    rig.advance(by: .milliseconds(99))
    #expect(rig.refusal(.devices, anna) == nil)
    guard case .rateLimited? = rig.refusal(.devices, anna) else {
      Issue.record("not limited")
      return
    }
    rig.advance(by: .seconds(4_000))
    #expect(rig.refusal(.devices, anna) == nil)
  }

  // MARK: The store fails

  @Test(
    "A batch whose commit fails answers and tells nothing of it; a request that fails does not hurt the others"
  )
  func faults() throws {
    let store = MemoryStore()
    let rig = try Rig(store)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.ask(.subscribe(one, .device(ben.device!)), ben)
    _ = rig.events()
    let calls = try (0..<3).map { _ in BackendCall(.send(group, try rig.message(group, anna)), from: anna) }
    store.faults.commit = .full
    #expect(
      rig.backend.handle(calls, at: rig.now) == (0..<3).map { _ in .failure(.unavailable(.full)) })
    #expect(rig.events() == [])
    store.faults.commit = nil
    // The fault ends the batch; alone, each works.
    store.faults.append = .failed
    #expect(
      rig.backend.handle(calls, at: rig.now)
        == (2...4).map { .success(.accepted(sequence: $0, epoch: 1, isRepeated: false)) })
    #expect(rig.events().count == 3)
    store.faults.append = .failed
    #expect(
      rig.refusal(.send(group, try rig.message(group, anna)), anna) == .unavailable(.failed))
    #expect(try rig.send(group, anna) == 5)
    store.faults.commit = .busy
    #expect(throws: BackendFailure.unavailable(.busy)) { try Rig(store) }
  }

  @Test("Wakes that the store refuses are tried again")
  func wakeFault() throws {
    let store = MemoryStore()
    let rig = try Rig(store)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [7])), ben)
    try rig.drain(ben)
    rig.advance(by: .seconds(5))
    _ = rig.events()
    try rig.send(group, anna)
    store.faults.commit = .busy
    rig.advance(by: .seconds(3))
    #expect(rig.events().contains(.storeFault(.busy)))
    #expect(throws: BackendFailure.unavailable(.busy)) { try rig.ask(.devices, ben) }
    store.faults.commit = nil
    rig.advance(by: .seconds(2))
    #expect(rig.pushes().map(\.device) == [ben.device!])
  }
}
