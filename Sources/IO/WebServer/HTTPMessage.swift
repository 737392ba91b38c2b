import PalbeUnits

/// What a client asked for, decoded.
public struct HTTPRequest: Sendable {
  /// A name and its value.
  public struct Field: Hashable, Sendable {
    /// For a header in lower case.
    public var name: String
    /// Without surrounding white space.
    public var value: String

    /// A pair.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// "GET", "POST", "OPTIONS" and so on.
  public var method: String
  /// Percent-decoded, without the query; "//" is collapsed to "/" and dot segments are resolved.
  public var path: String
  /// The query in order, percent-decoded, "+" read as a space. An item without "=" has an empty value.
  public var query: [Field]
  /// The headers, each name once; several values are joined by ", ".
  public var headers: [Field]
  /// The body of a plain request; empty for an upgrade.
  public var body: [UInt8]
  /// Who asks: the address of the TCP peer, which may be a proxy.
  public var remoteAddress: SocketAddress

  /// For tests of handlers.
  public init(
    method: String = "GET", path: String, query: [Field] = [], headers: [Field] = [], body: [UInt8] = [],
    remoteAddress: SocketAddress = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
  ) {
    self.method = method
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
    self.remoteAddress = remoteAddress
  }

  /// The first value of a query item, or nil.
  public func query(_ name: String) -> String? { query.first { $0.name == name }?.value }

  /// The value of a header, or nil. `name` in lower case.
  public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// The answer to a plain request, or the refusal of an upgrade.
public struct HTTPResponse: Sendable {
  /// 200 to 599.
  public var status: Int
  /// Headers besides `content-length` and `connection`, which the server writes.
  public var headers: [HTTPRequest.Field]
  /// Sent whole; not sent to a HEAD request.
  public var body: [UInt8]
  /// Gives the body piece by piece, in place of `body`.
  public var source: (any HTTPBodySource)?
  /// How many bytes the source gives.
  public var sourceByteCount: Int64 = 0

  /// An answer of bytes.
  public init(status: Int, headers: [HTTPRequest.Field] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// An answer of as many bytes as it says, from a source.
  public init(
    status: Int, headers: [HTTPRequest.Field] = [], source: any HTTPBodySource, byteCount: Int64
  ) {
    self.init(status: status, headers: headers)
    self.source = source
    sourceByteCount = byteCount
  }

  /// An answer of plain text.
  public static func text(_ text: String, status: Int = 200, headers: [HTTPRequest.Field] = [])
    -> HTTPResponse
  {
    HTTPResponse(
      status: status, headers: [.init("content-type", "text/plain; charset=utf-8")] + headers,
      body: Array(text.utf8))
  }

  /// The bytes on the wire (RFC 9112 §4). A name or value that would break out of its line is left out.
  func serialized(
    omittingBody: Bool, keepsAlive: Bool = false, common: [HTTPRequest.Field] = []
  ) -> [UInt8] {
    let code = (100...599).contains(status) ? status : 500
    var head = "HTTP/1.1 \(code) \(Self.reason(code))\r\n"
    let own = Set(headers.map(\.name))
    for field in headers + common.filter({ !own.contains($0.name) })
    where !field.name.isEmpty && field.name.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 58 })
      && field.value.utf8.allSatisfy({ $0 >= 32 || $0 == 9 })
    {
      head += "\(field.name): \(field.value)\r\n"
    }
    // RFC 9110 §8.6: none with 204.
    if code != 204 { head += "content-length: \(source == nil ? Int64(body.count) : sourceByteCount)\r\n" }
    head += keepsAlive ? "\r\n" : "connection: close\r\n\r\n"
    return Array(head.utf8) + (omittingBody ? [] : body)
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 201: "Created"
    case 202: "Accepted"
    case 204: "No Content"
    case 206: "Partial Content"
    case 304: "Not Modified"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 406: "Not Acceptable"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 410: "Gone"
    case 411: "Length Required"
    case 412: "Precondition Failed"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 416: "Range Not Satisfiable"
    case 422: "Unprocessable Content"
    case 426: "Upgrade Required"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 501: "Not Implemented"
    case 503: "Service Unavailable"
    case 507: "Insufficient Storage"
    default: "Status"
    }
  }
}
