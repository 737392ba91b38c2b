import PalbeBackendKit
import PalbeUnits
import Testing

@testable import PalbeBackendCore

@Suite("Identifiers, controls, stored answers")
struct ValueTests {
  private let time = WallTime(microseconds: 0x0123_4567_89ab * 1_000)

  @Test("Requirements 2: an id is its prefix and a UUIDv7 (RFC 9562 §5.7), and reads back")
  func identifiers() throws {
    var random = RandomSource(seed: 1)
    for _ in 0..<100 {
      let id = UserID(at: time, using: &random)
      #expect(UserID(id.text) == id && UserID(bytes: id.bytes) == id)
      #expect(id.text.hasPrefix("usr_01234567-89ab-7"))
      #expect(id.low >> 62 == 2)
      #expect(DeviceID(id.text) == nil)
    }
    let text = GroupID(at: time, using: &random).text
    for index in text.indices {
      #expect(GroupID(text[..<index]) == nil)
      var changed = text
      changed.replaceSubrange(index...index, with: "G")
      #expect(GroupID(changed) == nil)
    }
    #expect(GroupID(text + "0") == nil && GroupID(text.uppercased()) == nil)
    #expect(UserID("usr_01234567-89ab-4cde-8123-456789abcdef") == nil)
    #expect(UserID("usr_01234567-89ab-7cde-c123-456789abcdef") == nil)
    #expect(UserID(bytes: [1, 2, 3]) == nil)
    #expect(MLSGroupID([1]) == MLSGroupID([1]))
  }

  @Test("Ids of later milliseconds are greater")
  func order() {
    var random = RandomSource(seed: 2)
    let earlier = UserID(at: time, using: &random)
    #expect(earlier < UserID(at: time + .milliseconds(1), using: &random))
  }

  @Test("A control survives its stored form; no prefix of it is one")
  func controls() throws {
    var random = RandomSource(seed: 3)
    let user = UserID(at: time, using: &random)
    let group = GroupID(at: time, using: &random)
    let all: [Control] = [
      .devicesChanged(user), .memberLeft(group, user), .roleChanged(group, user, .admin),
      .groupReset(group, generation: 7), .historyGap(group),
    ]
    for control in all {
      #expect(try Control(decoding: control.encoded) == control)
      for count in 0..<control.encoded.count {
        #expect(throws: (any Error).self) { try Control(decoding: Array(control.encoded[..<count])) }
      }
      #expect(throws: (any Error).self) { try Control(decoding: control.encoded + [0]) }
    }
    #expect(throws: (any Error).self) { try Control(decoding: [9]) }
  }

  @Test("A first answer survives its stored form; no prefix of it is one")
  func answers() throws {
    var random = RandomSource(seed: 4)
    let group = GroupID(at: time, using: &random)
    let device = DeviceID(at: time, using: &random)
    let blob = BlobView(
      id: BlobID(at: time, using: &random), group: group, byteCount: 9, state: .pending, expiresAt: time)
    let all: [BackendResponse] = [
      .done, .enrolled(device), .keyPackageCount(KeyPackageCount(count: 3, hasLastResort: true)),
      .keyPackages(
        [ClaimedKeyPackage(device: device, blob: [1, 2], isLastResort: false)], missing: [device]),
      .founded(
        FoundedGroup(id: group, mlsID: MLSGroupID([1, 2]), epoch: 4, headSequence: 5, isExisting: true)),
      .committed(sequence: 5, epoch: 6), .acknowledged(count: 4), .blob(blob),
      .accepted(sequence: 7, epoch: 8, isRepeated: false), .accepted(sequence: 0, epoch: 8, isRepeated: true),
    ]
    for response in all {
      let stored = try #require(response.stored)
      #expect(BackendResponse(stored: stored) == response)
      for count in 0..<stored.count { #expect(BackendResponse(stored: Array(stored[..<count])) == nil) }
    }
    #expect(BackendResponse.groups([], hasMore: false).stored == nil)
  }

  @Test("Requirements 2.2: every failure has the table's code and status")
  func failures() {
    var random = RandomSource(seed: 5)
    let user = UserID(at: time, using: &random)
    let table: [(BackendFailure, String, Int)] = [
      (.notSignedIn, "not_signed_in", 401), (.sessionExpired, "session_expired", 401),
      (.callNotFound, "call_not_found", 404), (.callFull, "call_full", 409), (.callEnded, "call_ended", 410),
      (.deviceNotEnrolled, "device_not_enrolled", 412), (.deviceRevoked, "device_revoked", 403),
      (.chatIsDirect, "chat_is_direct", 422), (.notAMember, "not_a_member", 403),
      (.forbidden, "forbidden", 403), (.userNotFound, "user_not_found", 404),
      (.chatNotFound, "chat_not_found", 404), (.blobNotFound, "blob_not_found", 404),
      (.noKeyPackage(user), "no_key_package", 409), (.staleEpoch(head: 1), "stale_epoch", 409),
      (.commitIncomplete(devices: []), "commit_incomplete", 409),
      (.messageTooLarge(limit: 1), "message_too_large", 413),
      (.attachmentTooLarge(limit: 1), "attachment_too_large", 413), (.groupFull(limit: 1), "group_full", 422),
      (.blobExpired, "blob_expired", 410), (.rateLimited(retryAfter: .seconds(1)), "rate_limited", 429),
      (.unavailable(.full), "unavailable", 503), (.invalidRequest(.range), "invalid_request", 400),
      (.superseded, "superseded", 409), (.idempotencyMismatch, "idempotency_mismatch", 422),
    ]
    for (failure, code, status) in table {
      #expect(failure.code == code && failure.status == status)
    }
  }

  @Test("Deadlines come out in order")
  func deadlines() {
    var random = RandomSource(seed: 6)
    var queue = DeadlineQueue<UInt64>()
    var all: [UInt64] = []
    for _ in 0..<500 {
      let at = random.next() % 1_000
      all.append(at)
      queue.insert(at, at: Instant(nanoseconds: Int64(at)))
    }
    #expect(queue.take(at: Instant(nanoseconds: -1)) == nil)
    var taken: [UInt64] = []
    while let key = queue.take(at: .distantFuture) { taken.append(key) }
    #expect(taken == all.sorted())
  }
}
