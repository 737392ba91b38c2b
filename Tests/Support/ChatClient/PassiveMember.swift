import Foundation
import PalbeChatCore
import PalbeMLS
import PalbeServerClient
package import PalbeUnits
import PalbeWire

/// A user whose device is enrolled with real key packages and then does nothing: members of large groups.
package struct PassiveMember: Sendable {
  package let user: UserID

  /// Signs in at a server in development, which makes the account, and enrols a device.
  /// - Parameter packages: key packages besides the one of last resort.
  package init(port: UInt16, email: String, seed: UInt64, packages: Int = 4) throws {
    let body = try JSONSerialization.data(
      withJSONObject: ["email": email, "password": "correct horse \(email)"])
    let http = HTTPConnection(port: port)
    let answer = try http.send(
      "POST", "/v1/auth/sign-in", headers: [("content-type", "application/json")], body: [UInt8](body))
    guard let user = (answer.json["user_id"] as? String).flatMap({ UserID($0) }),
      let token = answer.json["access_token"] as? String
    else { throw ChatClient.Failure("sign-in: \(answer.status) \(answer.code ?? "")") }
    self.user = user
    let enrolment = try Self.enrolment(of: user, seed: seed, packages: packages)
    let text = { (bytes: [UInt8]) in Base64.encode(bytes, alphabet: .url, padded: false) }
    let json: [String: Any] = [
      "device_id": enrolment.device.text, "signature_key": text(enrolment.signatureKey), "platform": "linux",
      "key_packages": enrolment.keyPackages.map(text), "last_resort": text(enrolment.lastResort ?? []),
    ]
    let enrolled = try http.send(
      "POST", "/v1/devices",
      headers: [
        ("authorization", "Bearer \(token)"), ("content-type", "application/json"),
        ("idempotency-key", "enrol-\(user)"),
      ], body: [UInt8](try JSONSerialization.data(withJSONObject: json)))
    guard enrolled.status == 200 else {
      throw ChatClient.Failure("enrolment: \(enrolled.status) \(enrolled.code ?? "")")
    }
  }

  /// What an engine of this user asks first.
  private static func enrolment(of user: UserID, seed: UInt64, packages: Int) throws -> ServerEnrolment {
    var configuration = EngineConfiguration(me: user)
    configuration.keyPackageCount = packages
    let now = ChatTime(
      wall: WallTime(microseconds: Int64(Date().timeIntervalSince1970 * 1e6)),
      instant: Instant(nanoseconds: 0),
      boot: 1)
    var engine = try ChatEngine.open(
      configuration, storage: InMemoryMLSStorage(), random: RandomSource(seed: seed), at: now)
    engine.start(at: now)
    while let request = engine.pollRequest() {
      if case .enrol(let enrolment) = request.request { return enrolment }
    }
    throw ChatClient.Failure("the engine asks for no enrolment")
  }
}
