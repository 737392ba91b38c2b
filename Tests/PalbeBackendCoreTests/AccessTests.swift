import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits
import Testing

/// Every request, by everybody who may not.
@Suite("Access: every request by strangers, former members, weak roles, revoked and foreign devices")
struct AccessTests {
  private final class World {
    let rig: Rig<MemoryStore>
    let owner, member, former, stranger, revoked: Caller
    let group: GroupID
    let blob: BlobID
    let requests: [(name: String, request: BackendRequest)]

    init() throws {
      rig = try Rig(MemoryStore())
      (owner, member, former, stranger) = (try rig.enrol(), try rig.enrol(), try rig.enrol(), try rig.enrol())
      revoked = try rig.enrol(member.user)
      group = try rig.found(by: owner, with: [member.user, former.user])
      guard case .blob(let made) = try rig.ask(.createBlob(group, byteCount: 9), owner) else {
        throw Rig<MemoryStore>.Unexpected()
      }
      blob = made.id
      try rig.ask(.completeBlob(blob), owner)
      try rig.ask(.revokeDevice(revoked.device!), member)
      try rig.ask(.commit(group, try rig.bundle(group, by: owner, removing: [former.user])), owner)
      let view = try rig.view(group, owner)
      var founding = try rig.founding(by: owner, with: [member.user])
      founding.commit?.delta.addedUsers = []
      let connection = ConnectionID(7)
      requests = [
        ("group", .group(group)), ("commit", .commit(group, try rig.bundle(group, by: owner))),
        ("commits", .commits(group, from: 0, limit: 9)),
        ("send", .send(group, try rig.message(group, owner))),
        ("setRole", .setRole(group, member.user, .admin)), ("notifyScope", .notifyScope(group)),
        ("setNotifyScope", .setNotifyScope(group, .none)), ("unread", .unread(group)),
        ("markRead", .markRead(group, 1)), ("createBlob", .createBlob(group, byteCount: 1)),
        ("blob", .blob(blob)), ("completeBlob", .completeBlob(blob)),
        ("subscribe", .subscribe(connection, .conversation(view.summary.mlsID))),
        ("setTyping", .setTyping(connection, group, true)),
        ("reset", .reset(group, generation: 0, founding)), ("leave", .leave(group)),
      ]
    }

    /// Requests that are about no group.
    var others: [(name: String, request: BackendRequest)] {
      let connection = ConnectionID(7)
      let founding = GroupFounding(mlsID: rig.newMLSID(), kind: .group, commit: nil)
      return [
        ("devices", .devices), ("revokeDevice", .revokeDevice(owner.device!)),
        ("setPushToken", .setPushToken(PushToken(platform: .ios, bytes: [1]))), ("commsPrefs", .commsPrefs),
        ("setCommsPrefs", .setCommsPrefs(sharePresence: true, shareReceipts: true)),
        ("publishKeyPackages", .publishKeyPackages([], lastResort: nil)),
        ("keyPackageCount", .keyPackageCount), ("claimKeyPackages", .claimKeyPackages(of: owner.user)),
        ("createGroup", .createGroup(founding)), ("groups", .groups(after: nil, limit: 9)),
        ("fetchQueue", .fetchQueue(after: .start, limit: 9, connection: nil)),
        ("acknowledge", .acknowledge(.upTo(.start), connection: nil)),
        ("subscribe device", .subscribe(connection, .device(owner.device!))),
        ("unsubscribe", .unsubscribe(connection, .device(owner.device!))),
        ("heartbeat", .heartbeat(connection)),
      ]
    }
  }

  @Test("A stranger finds nothing")
  func stranger() throws {
    let world = try World()
    for (name, request) in world.requests {
      let expected: BackendFailure =
        name.contains("lob") && name != "createBlob" ? .blobNotFound : .chatNotFound
      #expect(world.rig.refusal(request, world.stranger) == expected, "\(name)")
    }
  }

  @Test("A former member is told so")
  func former() throws {
    let world = try World()
    for (name, request) in world.requests {
      #expect(world.rig.refusal(request, world.former) == .notAMember, "\(name)")
    }
  }

  @Test("A member does what needs no role, and nothing else")
  func member() throws {
    let world = try World()
    for (name, request) in world.requests {
      switch name {
      case "setRole", "reset", "completeBlob":
        #expect(world.rig.refusal(request, world.member) == .forbidden, "\(name)")
      default: #expect(world.rig.refusal(request, world.member) == nil, "\(name)")
      }
    }
  }

  @Test("The owner does everything")
  func owner() throws {
    let world = try World()
    for (name, request) in world.requests {
      #expect(world.rig.refusal(request, world.owner) == nil, "\(name)")
    }
  }

  @Test("A revoked device does nothing, and another user's or an unknown one is not enrolled")
  func devices() throws {
    let world = try World()
    let unknown = DeviceID(at: world.rig.now.wall, using: &world.rig.random)
    for (name, request) in world.requests + world.others {
      #expect(world.rig.refusal(request, world.revoked) == .deviceRevoked, "\(name)")
      for device in [world.owner.device, unknown, nil] {
        #expect(
          world.rig.refusal(request, Caller(user: world.member.user, device: device)) == .deviceNotEnrolled,
          "\(name)")
      }
    }
    #expect(try world.rig.view(world.group, world.owner).summary.epoch == 2)
  }

  @Test("Another user's device is not revoked, listened to or read")
  func foreign() throws {
    let world = try World()
    for (name, request) in world.others {
      switch name {
      case "revokeDevice", "subscribe device":
        #expect(world.rig.refusal(request, world.stranger) == .forbidden, "\(name)")
      case "createGroup": #expect(world.rig.refusal(request, world.stranger) == .invalidRequest(.message))
      default: #expect(world.rig.refusal(request, world.stranger) == nil, "\(name)")
      }
    }
  }
}
