import PalbeBackendCore
import PalbeUnits
import PalbeWebServer
import PalbeWire

/// A refusal as clients see it: `{"code":"stale_epoch","status":409,"message":"…","request_id":"…","details":{…}}`.
package struct APIError: Error, Equatable, Sendable {
  /// The word that programs compare.
  package var code: String
  /// The HTTP status.
  package var status: Int
  /// One English sentence for a developer; not for users.
  package var message: String
  /// When to try again.
  package var retryAfter: TimeDelta?
  /// What belongs to the code, such as `head_epoch`.
  package var details: [Detail] = []

  /// A member of `details`.
  package struct Detail: Equatable, Sendable {
    package enum Value: Equatable, Sendable {
      case number(Int64)
      case text(String)
      case texts([String])
    }
    package var name: String
    package var value: Value
  }

  /// A refusal of the shell's own.
  package init(
    _ code: String, _ status: Int, _ message: String, retryAfter: TimeDelta? = nil, details: [Detail] = []
  ) {
    self.code = code
    self.status = status
    self.message = message
    self.retryAfter = retryAfter
    self.details = details
  }

  /// 400: what does not have the form that its route asks for.
  package static func invalid(_ field: String, _ message: String) -> APIError {
    APIError("invalid_request", 400, message, details: [.init(name: "field", value: .text(field))])
  }

  /// 404: no route has this path.
  package static let notFound = APIError("not_found", 404, "there is nothing at this path")

  /// A refusal of the backend.
  package init(_ failure: BackendFailure) {
    self.init(failure.code, failure.status, failure.message)
    switch failure {
    case .staleEpoch(let head): details = [.init(name: "head_epoch", value: .number(Int64(clamping: head)))]
    case .noKeyPackage(let user): details = [.init(name: "user_id", value: .text(user.text))]
    case .commitIncomplete(let devices):
      details = [.init(name: "devices", value: .texts(devices.map(\.text)))]
    case .messageTooLarge(let limit), .groupFull(let limit):
      details = [.init(name: "limit", value: .number(Int64(limit)))]
    case .attachmentTooLarge(let limit): details = [.init(name: "limit", value: .number(limit))]
    case .rateLimited(let wait): retryAfter = wait
    // Different clients come back at different times by their own jitter.
    case .unavailable(let fault): retryAfter = fault == .overloaded ? .seconds(1) : .seconds(5)
    case .invalidRequest(let reason):
      details = [.init(name: "reason", value: .text(reason.name))]
      if let flaw = reason.flaw { details.append(.init(name: "field", value: .text(flaw.field))) }
    default: break
    }
  }

  /// The members of its JSON object.
  package func write(into json: inout JSONWriter, requestID: String?) {
    json.beginObject()
    json.key("code")
    json.string(code)
    json.key("status")
    json.integer(status)
    json.key("message")
    json.string(message)
    if let requestID {
      json.key("request_id")
      json.string(requestID)
    }
    if let retryAfter {
      let milliseconds = max(1, retryAfter.wholeMilliseconds)
      json.key("retry_after")
      let fraction = String(milliseconds % 1_000 + 1_000).dropFirst()
      json.raw("\(milliseconds / 1_000).\(fraction)")
    }
    if !details.isEmpty {
      json.key("details")
      json.beginObject()
      for detail in details {
        json.key(detail.name)
        switch detail.value {
        case .number(let number): json.integer(number)
        case .text(let text): json.string(text)
        case .texts(let texts):
          json.beginArray()
          for text in texts { json.string(text) }
          json.endArray()
        }
      }
      json.endObject()
    }
    json.endObject()
  }

  /// The answer to a request.
  package func response(requestID: String) -> HTTPResponse {
    var json = JSONWriter()
    write(into: &json, requestID: requestID)
    var headers: [HTTPRequest.Field] = [
      .init("content-type", "application/json"), .init("request-id", requestID),
    ]
    if let retryAfter {
      headers.append(.init("retry-after", "\(max(1, (retryAfter.wholeMilliseconds + 999) / 1_000))"))
    }
    return HTTPResponse(status: status, headers: headers, body: json.bytes)
  }
}

extension APIError {
  /// A refusal of the web server's own.
  init(_ refusal: RequestRefusal) {
    switch refusal {
    case .malformedLength, .lengthRequired: self = .invalid("Content-Length", refusal.reason)
    case .bodyTooEarly: self = .invalid("body", refusal.reason)
    case .malformed: self = .invalid("head", refusal.reason)
    case .headTooLarge(let limit):
      self = .invalid("head", refusal.reason)
      details.append(.init(name: "limit", value: .number(Int64(limit))))
    case .tooSlow: self = APIError("request_timeout", 408, refusal.reason)
    case .malformedUpgrade, .unknownUpgrade: self = .invalid("Upgrade", refusal.reason)
    case .webSocketVersion: self = .invalid("Sec-WebSocket-Version", refusal.reason)
    case .bodyTooLarge(let limit): self = APIError(.messageTooLarge(limit: limit))
    case .tooManyRequests: self = APIError(.rateLimited(retryAfter: .seconds(1)))
    case .tooManyBodies: self = APIError(.unavailable(.overloaded))
    }
    // `invalid_request` comes with 411, 426 and 431 too.
    status = refusal.status
  }

  /// A refusal about a blob's bytes.
  package init(_ refusal: BlobRefusal) {
    func number(_ name: String, _ value: Int64) -> [Detail] { [.init(name: name, value: .number(value))] }
    switch refusal {
    case .badAddress: self = APIError("forbidden", 403, "this server has not given out this address")
    case .addressExpired: self = APIError("forbidden", 403, "the address is over; ask for another one")
    case .notFound: self = APIError(.blobNotFound)
    case .methodNotAllowed: self = APIError("method_not_allowed", 405, "the address is for another method")
    case .tooLarge(let limit): self = APIError(.attachmentTooLarge(limit: limit))
    case .malformed(let field): self = .invalid(field, "the header \(field) does not fit to the request")
    case .offset(let offset):
      self = APIError(
        "upload_offset_mismatch", 409, "the piece does not begin where the one before ended",
        details: number("upload_offset", offset))
    case .incomplete(let offset):
      self = APIError(
        "upload_incomplete", 409, "not all bytes are there", details: number("upload_offset", offset))
    case .rangeNotSatisfiable(let count):
      self = APIError(
        "range_not_satisfiable", 416, "there are no such bytes", details: number("size", count))
    case .superseded: self = APIError("superseded", 409, "a newer upload of this blob goes on")
    case .storage(let fault): self = APIError(.unavailable(fault.storeFault ?? .failed))
    }
  }
}

extension InvalidRequest {
  /// Its word in `details.reason`.
  var name: String {
    switch reason {
    case .message: "message"
    case .keyPackage: "key_package"
    case .delta: "delta"
    case .welcome: "welcome"
    case .identifier: "identifier"
    case .range: "range"
    case .tooMany: "too_many"
    }
  }
}

extension BackendFailure {
  /// One sentence for a developer.
  var message: String {
    switch self {
    case .notSignedIn: "no access token of this server came with the request"
    case .sessionExpired: "the session is over; refresh it or sign in again"
    case .deviceNotEnrolled: "sign in; the device enrols itself"
    case .deviceRevoked: "this device was removed by its user"
    case .chatIsDirect: "a direct chat has no members, name or roles to change"
    case .notAMember: "the caller is no longer in the group"
    case .forbidden: "the caller may not do this"
    case .userNotFound: "there is no such user"
    case .chatNotFound: "there is no such group"
    case .blobNotFound: "there is no such blob"
    case .callNotFound: "there is no such call"
    case .callFull: "the call has as many members as it may have"
    case .callEnded: "the call is over"
    case .noKeyPackage: "the user has no device with a usable key package"
    case .staleEpoch: "the epoch is not the group's newest; fetch the commits since"
    case .commitIncomplete: "the commit leaves out devices or proposals that it must take in"
    case .messageTooLarge(let limit): "one of the parts is longer than \(limit) bytes"
    case .attachmentTooLarge(let limit): "attachments have at most \(limit) bytes"
    case .groupFull(let limit): "a group has at most \(limit) devices"
    case .blobExpired: "the blob is not kept any more"
    case .rateLimited: "too many requests"
    case .unavailable: "the server cannot do this now; try again"
    case .invalidRequest(let reason):
      reason.flaw.map { "\($0.field): \($0.words)" }
        ?? "the request contradicts itself or what is there (\(reason.name))"
    case .superseded: "a newer connection consumes this device's queue"
    case .idempotencyMismatch: "the idempotency key was used for another request"
    }
  }
}
