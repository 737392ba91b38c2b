import Foundation
import PalbeCrypto
import PalbeWire
import Synchronization

/// What the server gave this device when it enrolled.
package struct DeviceCredential: Codable, Sendable, Equatable, CustomStringConvertible {
  /// `mdv_…`, the same for this installation and person as long as it is enrolled.
  package var deviceId: String
  /// Shown with each request; a secret.
  package var token: String
  /// The server said that the user removed this device (S2-12).
  package var isRevoked = false

  package init(deviceId: String, token: String) {
    self.deviceId = deviceId
    self.token = token
  }

  package var description: String { deviceId }
}

/// The device's enrolment of each person that signs in here.
package final class DeviceRegistry: Sendable {
  private let vault: any KeyVault
  private let enrolment = Mutex<(@Sendable (_ userId: String) async throws -> DeviceCredential)?>(nil)
  /// Who is enrolled as what, as it changes; of the person that signed in last.
  package let changes = Broadcast<[String: DeviceCredential]>([:])

  package init(vault: any KeyVault) { self.vault = vault }

  /// Sets who enrols: the messaging module, which makes the keys.
  package func onEnrol(_ enrol: @escaping @Sendable (_ userId: String) async throws -> DeviceCredential) {
    enrolment.withLock { $0 = enrol }
  }

  /// The stored credential of a person, nil when there is none.
  package func credential(of userId: String) throws -> DeviceCredential? {
    if let known = changes.value[userId] { return known }
    guard let bytes = try storing({ () throws(StoreFault) in try vault.read(Self.name(userId)) }) else {
      return nil
    }
    guard let credential = try? JSONDecoder().decode(DeviceCredential.self, from: Data(bytes)) else {
      throw BackendError.storeUnavailable(.corrupted(Self.name(userId)))
    }
    changes.send(changes.value.merging([userId: credential]) { $1 })
    return credential
  }

  /// The credential where there is one; `device_not_enrolled` or `device_revoked` where there is none to use.
  package func existingCredential(of userId: String) throws -> DeviceCredential {
    guard let credential = try credential(of: userId) else {
      throw BackendError.client(.deviceNotEnrolled)
    }
    guard !credential.isRevoked else { throw BackendError.client(.deviceRevoked) }
    return credential
  }

  /// The credential, enrolling if need be.
  /// - Parameter refused: a credential that the server does not know.
  package func credential(
    of userId: String, replacing refused: DeviceCredential?
  ) async throws -> DeviceCredential {
    if let credential = try credential(of: userId), credential != refused {
      if credential.isRevoked { throw BackendError.client(.deviceRevoked) }
      return credential
    }
    guard let enrol = enrolment.withLock({ $0 }) else { throw BackendError.client(.deviceNotEnrolled) }
    let credential = try await enrol(userId)
    try set(credential, of: userId)
    return credential
  }

  /// Stores what an enrolment gave.
  package func set(_ credential: DeviceCredential, of userId: String) throws {
    // Strings only: it cannot fail.
    let bytes = [UInt8](try! JSONEncoder().encode(credential))
    try storing { () throws(StoreFault) in try vault.write(bytes, as: Self.name(userId)) }
    changes.send(changes.value.merging([userId: credential]) { $1 })
  }

  /// The server said that this device was removed.
  package func markRevoked(_ credential: DeviceCredential, of userId: String) {
    guard var current = try? self.credential(of: userId), current == credential else { return }
    current.isRevoked = true
    try? set(current, of: userId)
  }

  /// Forgets a revoked device, so that the next use enrols a new one: the person signed in again.
  package func forgetRevoked(of userId: String) throws {
    guard try credential(of: userId)?.isRevoked == true else { return }
    try storing { () throws(StoreFault) in try vault.remove(Self.name(userId)) }
    changes.send(changes.value.filter { $0.key != userId })
  }

  /// The server's text is not a name for a file: its hash is.
  private static func name(_ userId: String) -> String {
    "device.1." + Hex.encode(Array(SHA256.hash(Array(userId.utf8))[..<16]))
  }

  private func storing<Value>(_ body: () throws(StoreFault) -> Value) throws(BackendError) -> Value {
    do throws(StoreFault) { return try body() } catch { throw .storeUnavailable(error) }
  }
}
