import Foundation
import PalbeWire
import Synchronization

/// Tells the server which push tokens this device has, for each platform the latest.
///
/// A token belongs to the device that is enrolled. When the person's device is not enrolled yet, which the first use of
/// messaging does, the token waits for that.
package final class PushTokens: Sendable {
  /// What has been handed in, and what the server has.
  private struct State {
    var wanted: [String: Wanted] = [:]
    var isPosting = false
    var isFollowing = false
  }
  private struct Wanted: Equatable {
    var userId: String
    var token: String
  }
  /// By platform, what the server accepted last.
  private struct Posted: Codable, Equatable {
    var deviceId: String
    var token: String
  }
  private static let recordName = "push"
  /// APNs tokens have 32 bytes; longer ones may come, endless ones not.
  private static let tokenLimit = 512

  private let client: BackendClient
  private let vault: any KeyVault
  private let state = Mutex(State())

  init(client: BackendClient, vault: any KeyVault) {
    self.client = client
    self.vault = vault
  }

  /// Takes a token; returns at once. Without a signed-in user it does nothing but say so.
  package func register(_ token: [UInt8], platform: String) {
    guard case .signedIn(let user) = client.sessions.state.value else {
      return SDKLog.note("a push token came while nobody is signed in; register it again after the sign-in")
    }
    guard (1...Self.tokenLimit).contains(token.count) else {
      return SDKLog.note("a push token of \(token.count) bytes is none")
    }
    let mayFollow = state.withLock { state in
      state.wanted[platform] = Wanted(userId: user.id, token: Hex.encode(token))
      defer { state.isFollowing = true }
      return !state.isFollowing
    }
    if mayFollow { followEnrolments() }
    post()
  }

  /// Each enrolment posts what waits for it.
  private func followEnrolments() {
    let changes = client.devices.changes.stream()
    Task { [weak self] in
      for await _ in changes { self?.post() }
    }
  }

  private func post() {
    let isFirst = state.withLock { state in
      defer { state.isPosting = true }
      return !state.isPosting
    }
    if isFirst { Task { await postAll() } }
  }

  private func postAll() async {
    var failed: [String: Posted] = [:]
    while let (platform, wanted, credential) = next(without: failed) {
      let entry = Posted(deviceId: credential.deviceId, token: wanted.token)
      do {
        try await put(wanted.token, platform, credential.deviceId)
        var posted = stored()
        posted[platform] = entry
        // Strings only: it cannot fail.
        try? vault.write([UInt8](try! JSONEncoder().encode(posted)), as: Self.recordName)
      } catch {
        // The system hands tokens in at each start of the app, which is the next attempt.
        // A device that was enrolled anew in the middle of it is another one, and tried at once.
        failed[platform] = entry
        SDKLog.note(
          "a push token could not be registered: \((error as? BackendError)?.code.rawValue ?? "cancelled")")
      }
    }
  }

  /// What is to be posted; nil, and the end of posting, when there is nothing.
  private func next(without failed: [String: Posted]) -> (String, Wanted, DeviceCredential)? {
    let posted = stored()
    return state.withLock { state in
      if case .signedIn(let user) = client.sessions.state.value {
        // Who signed in since hands their token in again.
        state.wanted = state.wanted.filter { $0.value.userId == user.id }
        if let credential = try? client.devices.credential(of: user.id), !credential.isRevoked {
          for (platform, wanted) in state.wanted {
            let entry = Posted(deviceId: credential.deviceId, token: wanted.token)
            if posted[platform] != entry, failed[platform] != entry { return (platform, wanted, credential) }
          }
        }
      }
      state.isPosting = false
      return nil
    }
  }

  private func stored() -> [String: Posted] {
    guard let bytes = try? vault.read(Self.recordName) else { return [:] }
    return (try? JSONDecoder().decode([String: Posted].self, from: Data(bytes))) ?? [:]
  }

  private func put(_ token: String, _ platform: String, _ deviceId: String) async throws {
    var call = BackendCall("PUT", "/v1/devices/\(ServerURL.encode(deviceId))/push-token", access: .device)
    call.body = try JSON.encode(["platform": platform, "token": token])
    try await client.send(call)
  }
}
