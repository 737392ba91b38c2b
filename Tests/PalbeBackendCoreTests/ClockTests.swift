import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits
import Testing

/// Somebody sets the wall clock by a day, forward or back, while the steady one goes on (section 3, clock jumps).
@Suite("A wall clock that jumps by a day", .serialized)
struct ClockTests {
  private static let day = TimeDelta.seconds(86_400)
  private static let jumps = [day, TimeDelta.zero - day]
  private let one = ConnectionID(1)
  private let two = ConnectionID(2)

  private func pair(
    _ limits: BackendLimits = BackendLimits()
  ) throws -> (Rig<MemoryStore>, Caller, Caller, GroupID) {
    let rig = try Rig(MemoryStore(), limits: limits)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.drain(ben)
    try rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [7])), ben)
    rig.advance(by: .seconds(10))
    _ = rig.events()
    return (rig, anna, ben, group)
  }

  @Test(
    "Leases of typing and presence last as long as ever, and wakes come after two seconds, once",
    arguments: jumps)
  func leases(_ jump: TimeDelta) throws {
    let (rig, anna, ben, group) = try pair()
    let topic = TopicName.conversation(try rig.view(group, anna).summary.mlsID)
    try rig.ask(.subscribe(one, topic), anna)
    try rig.ask(.subscribe(two, topic), ben)
    try rig.ask(.setTyping(one, group, true), anna)
    try rig.send(group, anna)
    _ = rig.events()
    rig.jump(by: jump)
    rig.advance(by: .milliseconds(1_900))
    #expect(rig.events() == [])
    rig.advance(by: .milliseconds(200))
    #expect(rig.pushes().map(\.device) == [ben.device])
    rig.jump(by: .zero - jump)
    rig.advance(by: .milliseconds(3_800))
    #expect(rig.events() == [])
    rig.advance(by: .milliseconds(200))
    #expect(rig.events() == [.publish(.conversation(group), .typing(anna.user, anna.device!, false))])
    rig.jump(by: jump)
    rig.advance(by: .milliseconds(53_800))
    #expect(rig.events() == [])
    rig.advance(by: .milliseconds(200))
    #expect(
      Set(rig.events().map { "\($0)" }).count == 2 && rig.pushes() == [], "both have shown no sign of life")
  }

  @Test("Rates are counted by the steady clock: a jump neither frees nor locks out", arguments: jumps)
  func rates(_ jump: TimeDelta) throws {
    var limits = BackendLimits()
    limits.requestsPerSecond = 10
    limits.requestBurst = 100
    let (rig, anna, _, _) = try pair(limits)
    func accepted() -> Int {
      rig.backend.handle((0..<120).map { _ in BackendCall(.devices, from: anna) }, at: rig.now)
        .count { if case .success = $0 { true } else { false } }
    }
    #expect(accepted() == 100)
    rig.jump(by: jump)
    #expect(accepted() == 0)
    rig.advance(by: .seconds(1))
    #expect(accepted() == 10)
    // Other limits count from then on, also for who has spent all.
    rig.backend.limits.requestsPerSecond = 1_000
    rig.backend.limits.requestBurst = 10_000
    rig.advance(by: .milliseconds(100))
    #expect((90...100).contains(accepted()))
  }

  @Test(
    "Queues are redelivered whole and in order, are acknowledged, and dropped after 30 days, a day late at most",
    arguments: jumps)
  func queues(_ jump: TimeDelta) throws {
    let (rig, anna, ben, group) = try pair()
    for delta in [jump, .zero - jump, jump] {
      for _ in 0..<3 { try rig.send(group, anna) }
      rig.jump(by: delta)
      rig.advance(by: .seconds(7_200))
    }
    try rig.send(group, anna)
    let rows = try rig.queue(ben)
    #expect(rows.count == 10 && rows.map(\.id) == rows.map(\.id).sorted())
    #expect(try rig.queue(ben) == rows)
    try rig.ask(.acknowledge(.upTo(rows[3].id), connection: nil), ben)
    #expect(try rig.queue(ben) == Array(rows[4...]))
    rig.advance(by: .seconds(29 * 86_400))
    #expect(try rig.queue(ben) == Array(rows[4...]))
    rig.advance(by: .seconds(3 * 86_400))
    let left = try rig.queue(ben)
    #expect(!left.isEmpty && left.allSatisfy { $0.content == .control(.historyGap(group)) })
    #expect(try rig.send(group, anna) == 12)
  }

  @Test("Uploads, attachments, repetitions and key packages are not over before their time", arguments: jumps)
  func expiry(_ jump: TimeDelta) throws {
    let (rig, anna, ben, group) = try pair()
    func blob(_ request: BackendRequest) throws -> BlobView {
      guard case .blob(let view) = try rig.ask(request, anna) else { throw Rig<MemoryStore>.Unexpected() }
      return view
    }
    let (pending, ready) = (
      try blob(.createBlob(group, byteCount: 5)), try blob(.createBlob(group, byteCount: 5))
    )
    _ = try blob(.completeBlob(ready.id))
    let key = IdempotencyKey(key: [1], digest: [2])
    let claimed = try rig.ask(.claimKeyPackages(of: ben.user), anna, key: key)
    guard case .devices(let devices) = try rig.ask(.devices, ben) else { return }
    let soon = rig.package(devices[0].signatureKey, of: ben, days: 0)
    #expect(rig.refusal(.publishKeyPackages([soon], lastResort: nil), ben) == .invalidRequest(.keyPackage))
    rig.jump(by: jump)
    rig.advance(by: .seconds(890))
    #expect(try blob(.blob(pending.id)).state == .pending)
    #expect(try blob(.completeBlob(pending.id)).state == .ready)
    rig.advance(by: .seconds(80_000))
    #expect(try rig.ask(.claimKeyPackages(of: ben.user), anna, key: key) == claimed)
    rig.advance(by: .seconds(28 * 86_400))
    #expect(try blob(.blob(ready.id)).state == .ready)
    #expect(
      try rig.ask(.keyPackageCount, ben) == .keyPackageCount(KeyPackageCount(count: 2, hasLastResort: true)))
    // A key that is over is another request's.
    #expect(try rig.ask(.claimKeyPackages(of: ben.user), anna, key: key) != claimed)
    rig.advance(by: .seconds(4 * 86_400))
    #expect(rig.refusal(.blob(ready.id), anna) == .blobNotFound)
  }
}
