import Foundation

/// A refusal, as the server words it. Some refusals the SDK makes itself, before it asks the server; they have
/// the same shape and no request id.
///
///     do { try await chat.send(text: "hello") } catch let error as BackendError {
///       if case .server(let failure) = error, failure.code == .notAMember { … }
///     }
public struct ServerFailure: Sendable, Equatable {
  /// The word that a program compares.
  public let code: FailureCode
  /// The HTTP status.
  public let status: Int
  /// For a person, in English.
  public let message: String
  /// Names the request in the server's log; nil when the SDK refused by itself.
  public let requestId: String?
  /// When to try again at the earliest.
  public let retryAfter: Duration?
  /// What the server adds, such as the head epoch: a JSON object, or empty.
  package let details: [UInt8]

  /// For tests and previews of apps.
  public init(
    code: FailureCode, status: Int, message: String, requestId: String? = nil, retryAfter: Duration? = nil
  ) {
    self.init(
      code: code, status: status, message: message, requestId: requestId, retryAfter: retryAfter,
      details: [])
  }

  package init(
    code: FailureCode, status: Int, message: String, requestId: String?, retryAfter: Duration?,
    details: [UInt8]
  ) {
    self.code = code
    self.status = status
    self.message = message
    self.requestId = requestId
    self.retryAfter = retryAfter
    self.details = details
  }

  /// A refusal by the SDK itself, worded and numbered by the table.
  package init(client code: FailureCode) {
    let facts = FailureFacts.facts(of: code, status: nil)
    self.init(code: code, status: facts.status ?? 0, message: facts.message)
  }

  /// Who refused.
  public var origin: FailureOrigin { FailureFacts.facts(of: code, status: status).origin }
  /// Whether the same call can succeed later.
  public var retry: FailureRetry { FailureFacts.facts(of: code, status: status).retry }
  /// What a developer does about it.
  public var advice: String { FailureFacts.facts(of: code, status: status).advice }

  /// A member of `details`; nil when it is not there or of another type.
  package func detail<Value: Decodable>(_ name: String, as type: Value.Type = Value.self) -> Value? {
    guard let members = try? JSONSerialization.jsonObject(with: Data(details)) as? [String: Any],
      let member = members[name], let text = try? JSONSerialization.data(withJSONObject: [member])
    else { return nil }
    return try? JSONDecoder().decode([Value].self, from: text)[0]
  }
}
