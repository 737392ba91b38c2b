import PalbeWire

extension LiveKit {
  /// What a Twirp call answers when it fails: JSON, whatever the request was (Twirp wire protocol v7, "Errors").
  public struct TwirpError: Error, Equatable, Sendable {
    /// What kind of failure; each has its HTTP status.
    public enum Code: String, CaseIterable, Sendable {
      case canceled
      case unknown
      case invalidArgument = "invalid_argument"
      case malformed
      case deadlineExceeded = "deadline_exceeded"
      case notFound = "not_found"
      case badRoute = "bad_route"
      case alreadyExists = "already_exists"
      case permissionDenied = "permission_denied"
      case unauthenticated
      case resourceExhausted = "resource_exhausted"
      case failedPrecondition = "failed_precondition"
      case aborted
      case outOfRange = "out_of_range"
      case unimplemented
      case `internal`
      case unavailable
      case dataloss

      /// The status of the HTTP response.
      public var httpStatus: Int {
        switch self {
        case .invalidArgument, .malformed, .outOfRange: 400
        case .unauthenticated: 401
        case .permissionDenied: 403
        case .notFound, .badRoute: 404
        case .canceled, .deadlineExceeded: 408
        case .alreadyExists, .aborted: 409
        case .failedPrecondition: 412
        case .resourceExhausted: 429
        case .unknown, .internal, .dataloss: 500
        case .unimplemented: 501
        case .unavailable: 503
        }
      }
    }

    /// What kind of failure.
    public var code: Code
    /// For people; never a secret.
    public var message: String
    /// More about it, by key.
    public var meta: [String: String]

    /// A failure.
    public init(_ code: Code, _ message: String, meta: [String: String] = [:]) {
      self.code = code
      self.message = message
      self.meta = meta
    }

    /// The `Content-Type` of the response.
    public static let contentType = "application/json"

    /// The body of the response.
    public var json: String {
      var writer = JSONWriter()
      writer.beginObject()
      writer.key("code")
      writer.string(code.rawValue)
      writer.key("msg")
      writer.string(message)
      if !meta.isEmpty {
        writer.key("meta")
        writer.beginObject()
        for (key, value) in meta.sorted(by: { $0.key < $1.key }) {
          writer.key(key)
          writer.string(value)
        }
        writer.endObject()
      }
      writer.endObject()
      return writer.text
    }

    /// Reads a response's body of at most 64 KiB, as a client. A code that is not Twirp's is `unknown`.
    public init(json: String) throws(JSONError) {
      self.init(.unknown, "")
      var reader = try JSONReader(json, limit: 65_536)
      var hasCode = false
      try reader.enterObject()
      while let key = try reader.nextKey() {
        switch key {
        case "code":
          code = Code(rawValue: try reader.string()) ?? .unknown
          hasCode = true
        case "msg": message = try reader.string()
        case "meta" where reader.kind() == .object:
          try reader.enterObject()
          while let key = try reader.nextKey() { meta[key] = try reader.string() }
        default: try reader.skipValue()
        }
      }
      try reader.finish()
      guard hasCode else { throw .missing }
    }
  }

  /// How the bodies of a Twirp call are written.
  public enum TwirpEncoding: Hashable, Sendable {
    case protobuf, json

    /// From a request's `Content-Type`, parameters such as `charset` aside; nil for another type, which is
    /// answered with `bad_route`.
    public init?(contentType: String) {
      let type = contentType.prefix { $0 != ";" }.lowercased()
      switch type.split(separator: " ", omittingEmptySubsequences: true).first ?? "" {
      case "application/protobuf": self = .protobuf
      case "application/json": self = .json
      default: return nil
      }
    }

    /// The `Content-Type` of a response.
    public var contentType: String {
      switch self {
      case .protobuf: "application/protobuf"
      case .json: "application/json"
      }
    }
  }
}
