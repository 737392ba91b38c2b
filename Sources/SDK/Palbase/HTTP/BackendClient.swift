import PalbeUnits

/// Sends calls as the signed-in user and as this device. What the server refuses because a token is over, or because
/// it does not know the device, is put right and repeated once.
package final class BackendClient: Sendable {
  package let http: HTTPClient
  package let sessions: SessionAuthority
  package let devices: DeviceRegistry

  package init(http: HTTPClient, sessions: SessionAuthority, devices: DeviceRegistry) {
    self.http = http
    self.sessions = sessions
    self.devices = devices
  }

  /// The successful answer to `call`; refusals and faults are `BackendError`, a cancelled task `CancellationError`.
  @discardableResult
  package func send(_ call: BackendCall) async throws -> BackendAnswer {
    guard call.access != .open else { return try await http.send(call) }
    var token = try await sessions.accessToken()
    let userId = token.userId
    if let wanted = call.userId, wanted != userId { throw BackendError.client(.notSignedIn) }
    var device: DeviceCredential?
    if call.access == .device {
      device =
        try call.enrols
        ? await devices.credential(of: userId, replacing: nil) : devices.existingCredential(of: userId)
    }
    var mayRenew = true
    var mayEnrol = true
    while true {
      var headers = [SessionAuthority.authorization(token.text)]
      if let device { headers.append(.init("Palbe-Device", device.token)) }
      do {
        return try await http.send(call, headers: headers)
      } catch BackendError.server(let failure) {
        switch failure.code {
        case .sessionExpired where mayRenew, .notSignedIn where mayRenew:
          mayRenew = false
          token = try await sessions.accessToken(replacing: token.text)
          // The rest of the call would be somebody else's.
          guard token.userId == userId else { throw BackendError.client(.sessionExpired) }
        case .deviceNotEnrolled where mayEnrol && call.enrols && device != nil:
          mayEnrol = false
          device = try await devices.credential(of: userId, replacing: device)
        case .deviceRevoked:
          let own = try device ?? devices.credential(of: userId)
          if let own { devices.markRevoked(own, of: userId) }
          // The session that enrolled the device is over with it; a renewal tells.
          if mayRenew { _ = try? await sessions.accessToken(replacing: token.text) }
          throw BackendError.server(failure)
        default: throw BackendError.server(failure)
        }
      }
    }
  }
}
