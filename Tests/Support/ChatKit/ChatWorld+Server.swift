import PalbeBackendCore
import PalbeBackendKit
import PalbeChatCore
import PalbeUnits

/// Beside the engines: what is done to the server, or asked of it, directly.
extension ChatWorld {
  /// A user with an account and no device.
  package func addUser() throws -> UserID {
    let user = UserID(at: now.wall, using: &random)
    _ = try backend.handle(.registerUser, from: Caller(user: user, device: nil), at: serverTime)
    return user
  }

  func caller(_ phone: Phone) -> Caller {
    Caller(user: phone.user, device: phone.device?.device)
  }

  /// A user removes one of their devices, from another.
  package func revoke(_ phone: Phone, by other: Phone) throws {
    guard let device = phone.device?.device else { return }
    _ = try backend.handle(.revokeDevice(device), from: caller(other), at: serverTime)
    ledger.revoked(device)
    publish()
  }

  /// How many devices of a user the server knows.
  package func deviceCount(of user: UserID) -> Int {
    guard let phone = phones.first(where: { $0.user == user && $0.isRunning }),
      case .devices(let devices)? = try? backend.handle(.devices, from: caller(phone), at: serverTime)
    else { return 0 }
    return devices.count { $0.revokedAt == nil }
  }

  /// The bytes that a device last sent go to the server once more, under another id; false when it has sent none that the
  /// server took.
  package func replayLast(of phone: Phone) -> Bool {
    guard let (group, message) = phone.lastSent, ledger.isTaken(message.id) else { return false }
    let again = OutgoingMessage(
      epoch: message.epoch, id: ClientMessageID(at: now.wall, using: &random), blob: message.blob,
      wakes: message.wakes)
    defer { publish() }
    return (try? backend.handle(.send(group, again), from: caller(phone), at: serverTime)) != nil
  }

  /// A device sends what the server takes for a proposal, past its engine, which never does.
  package func propose(_ phone: Phone, in group: GroupID) throws {
    guard case .group(let view) = try backend.handle(.group(group), from: caller(phone), at: serverTime)
    else {
      return
    }
    let summary = view.summary
    let proposal = OutgoingMessage(
      epoch: summary.epoch, id: ClientMessageID(at: now.wall, using: &random),
      blob: Wire.proposal(summary.mlsID, summary.epoch, [1]), wakes: false)
    _ = try backend.handle(.send(group, proposal), from: caller(phone), at: serverTime)
    publish()
  }

  package func isEnrolled(_ phone: Phone) -> Bool { phone.engine?.isEnrolled == true }

  /// Key packages of a device that others can claim.
  package func keyPackageCount(of phone: Phone) -> Int {
    guard
      case .keyPackageCount(let count)? = try? backend.handle(
        .keyPackageCount, from: caller(phone), at: serverTime)
    else { return 0 }
    return count.count
  }

  /// The epoch that the server is in.
  package func epoch(of group: GroupID, for phone: Phone) -> UInt64? {
    guard case .group(let view)? = try? backend.handle(.group(group), from: caller(phone), at: serverTime)
    else {
      return nil
    }
    return view.summary.epoch
  }
}
