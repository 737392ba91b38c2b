import Foundation
package import PalbeUnits

/// A request to a route of the server, before it is signed and sent.
package struct BackendCall: Sendable {
  /// Who must be known.
  package enum Access: Sendable {
    /// Nobody: signing in.
    case open
    /// A signed-in user.
    case session
    /// A signed-in user and this device.
    case device
  }

  package var method: String
  /// From `/v1`, encoded.
  package var path: String
  package var query: [(String, String)] = []
  package var body: [UInt8]?
  package var contentType = "application/json"
  package var access: Access
  /// The server answers a second request with this key as it answered the first. A caller that must survive a crash
  /// keeps the key.
  package var idempotencyKey: String?
  package var timeout = TimeDelta.seconds(20)
  package var schedule = RetrySchedule()

  package init(_ method: String, _ path: String, access: Access) {
    self.method = method
    self.path = path
    self.access = access
  }

  /// A POST of JSON; with `key` nil, a fresh idempotency key.
  package static func post(
    _ path: String, _ value: some Encodable, access: Access, key: String? = nil
  ) throws -> BackendCall {
    var call = BackendCall("POST", path, access: access)
    call.body = try JSON.encode(value)
    call.idempotencyKey = key ?? UUID().uuidString.lowercased()
    return call
  }

  /// Whether a device that the server does not know is enrolled for it; false for who enrols it itself.
  package var enrols = true

  /// Only as this user: `not_signed_in` when somebody else is. Nil: as who is signed in.
  package var userId: String?

  /// The route itself is harmless to repeat, whatever its method.
  package var isHarmlessTwice = false

  /// It may arrive twice.
  var isRepeatable: Bool {
    isHarmlessTwice || idempotencyKey != nil || ["GET", "HEAD", "PUT", "DELETE"].contains(method)
  }
}

/// A successful answer.
package struct BackendAnswer: Sendable {
  package var status: Int
  package var headers: [String: String]
  package var body: [UInt8]

  /// Decodes the body; anything else than a `Value` is `unexpectedAnswer`.
  package func json<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
    do {
      return try JSON.decode(body)
    } catch {
      throw BackendError.unexpectedAnswer(requestId: headers["request-id"])
    }
  }
}

/// JSON as the server writes it: snake case, bytes as base64url without padding.
package enum JSON {
  package static func encode(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(value))
  }

  package static func decode<Value: Decodable>(_ bytes: [UInt8], as type: Value.Type = Value.self) throws
    -> Value
  {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(Value.self, from: Data(bytes))
  }
}
