import PalbeAccountsCore
import PalbeUnits
import PalbeWebServer
import PalbeWire

/// The OpenAPI 3.1 document of a table of routes.
struct OpenAPIDocument {
  let table: RouteTable

  /// The document as JSON.
  func text() -> [UInt8] {
    var json = JSONWriter()
    var records: [String: Shape.Record] = [:]
    for route in table.routes {
      collect(route.answer, into: &records)
      switch route.body {
      case .none: break
      case .json(let record), .jsonOrBytes(let record, _): collect(record, into: &records)
      }
    }
    collect(Shape.Record.error, into: &records)
    json.object { json in
      json.member("openapi", "3.1.0")
      json.key("info")
      json.object {
        $0.member("title", "palbe-server")
        $0.member("version", Release.version)
        $0.member(
          "description",
          "The blind delivery server: it orders, queues and wakes, and reads nothing. Not here are the WebSocket at "
            + "/v1/realtime, the bytes of attachments below /v1/blob-bytes/, whose addresses the routes of blobs answer, "
            + "and this document at /v1/openapi.json; docs/server-api.md has them.")
      }
      json.key("paths")
      json.object { json in
        for path in paths {
          json.key(path)
          json.object { json in
            for route in table.routes where route.pattern == path {
              json.key(route.method.lowercased())
              json.object { operation(route, &$0) }
            }
          }
        }
      }
      json.key("components")
      json.object { json in
        json.key("securitySchemes")
        json.object { json in
          json.key("session")
          json.object {
            $0.member("type", "http")
            $0.member("scheme", "bearer")
          }
          json.key("device")
          json.object {
            $0.member("type", "apiKey")
            $0.member("in", "header")
            $0.member("name", "Palbe-Device")
          }
        }
        json.key("schemas")
        json.object { json in
          for (name, record) in records.sorted(by: { $0.key < $1.key }) {
            json.key(name)
            write(record, &json)
          }
        }
      }
    }
    return json.bytes
  }

  private var paths: [String] {
    var paths: [String] = []
    for route in table.routes where !paths.contains(route.pattern) { paths.append(route.pattern) }
    return paths
  }

  private func collect(_ record: Shape.Record?, into records: inout [String: Shape.Record]) {
    guard let record else { return }
    if let name = record.name { records[name] = record }
    for field in record.fields { collect(field.shape, into: &records) }
  }

  private func collect(_ shape: Shape, into records: inout [String: Shape.Record]) {
    switch shape {
    case .list(let element, _): collect(element, into: &records)
    case .object(let record): collect(record, into: &records)
    default: break
    }
  }

  // MARK: Operations

  private func operation(_ route: Route, _ json: inout JSONWriter) {
    json.member("operationId", route.name)
    json.member("summary", route.summary)
    json.key("security")
    json.beginArray()
    if route.access != .open {
      json.object { json in
        json.key("session")
        json.beginArray()
        json.endArray()
        if route.access == .device {
          json.key("device")
          json.beginArray()
          json.endArray()
        }
      }
    }
    json.endArray()
    parameters(route, &json)
    body(route, &json)
    json.key("responses")
    json.object { responses(route, &$0) }
  }

  private func parameters(_ route: Route, _ json: inout JSONWriter) {
    json.key("parameters")
    json.beginArray()
    for name in route.parameters {
      parameter(name, in: "path", Route.pathShapes[name] ?? .text(upTo: 64), isRequired: true, "", &json)
    }
    for field in route.query {
      parameter(field.name, in: "query", field.shape, isRequired: field.isRequired, field.about, &json)
    }
    if case .jsonOrBytes(let record, let member) = route.body {
      for field in record.fields where field.name != member {
        parameter(
          field.name, in: "query", field.shape, isRequired: false,
          "with a body of bytes, \(field.isRequired ? "needed" : "optional"): \(field.about)", &json)
      }
    }
    if route.idempotency != .ignored {
      json.object { json in
        json.member("name", "Idempotency-Key")
        json.member("in", "header")
        json.member("required", route.idempotency == .required)
        json.member("description", "the same key again within a day is answered as the first time")
        json.key("schema")
        json.object {
          $0.member("type", "string")
          $0.member("pattern", "^[!-~]{1,64}$")
        }
      }
    }
    json.endArray()
  }

  private func parameter(
    _ name: String, in place: String, _ shape: Shape, isRequired: Bool, _ about: String,
    _ json: inout JSONWriter
  ) {
    json.object { json in
      json.member("name", name)
      json.member("in", place)
      json.member("required", isRequired)
      if !about.isEmpty { json.member("description", about) }
      json.key("schema")
      write(shape, &json)
    }
  }

  private func body(_ route: Route, _ json: inout JSONWriter) {
    let record: Shape.Record
    var member: Shape?
    switch route.body {
    case .none: return
    case .json(let shape): record = shape
    case .jsonOrBytes(let shape, let name):
      record = shape
      member = shape.fields.first { $0.name == name }?.shape
    }
    json.key("requestBody")
    json.object { json in
      json.member("required", true)
      json.key("content")
      json.object { json in
        json.key("application/json")
        json.object { json in
          json.key("schema")
          reference(record, &json)
        }
        if case .bytes(let range)? = member {
          json.key("application/octet-stream")
          json.object { json in
            json.key("schema")
            json.object {
              $0.member("type", "string")
              $0.member("format", "binary")
              $0.member("minLength", range.lowerBound)
              $0.member("maxLength", range.upperBound)
            }
          }
        }
      }
    }
  }

  /// The refusals of a route by their status.
  static func codes(of route: Route) -> [Int: Set<String>] {
    var codes = Set(route.codes)
    // The web server's own: a body that is none, or that nobody wants; too many requests; too many bodies.
    codes.formUnion(["invalid_request", "message_too_large", "rate_limited", "unavailable"])
    if case .none = route.body {} else { codes.insert("unsupported_media_type") }
    // What stands in a path may make it another one.
    if !route.parameters.isEmpty { codes.formUnion(["not_found", "method_not_allowed"]) }
    if route.idempotency != .ignored { codes.insert("idempotency_mismatch") }
    if route.access != .open { codes.formUnion(["not_signed_in", "session_expired", "device_revoked"]) }
    if route.access == .device { codes.insert("device_not_enrolled") }
    var statuses = Dictionary(grouping: codes) { status(of: $0) }.mapValues { Set($0) }
    // A head or a body that came too slowly, a body of unknown length, a head that is too long.
    statuses[408] = ["request_timeout"]
    for status in [411, 431] { statuses[status] = ["invalid_request"] }
    return statuses
  }

  /// The status of a code of requirements 2.2 and of the shell's own.
  static func status(of code: String) -> Int {
    switch code {
    case "invalid_request": 400
    case "not_signed_in", "session_expired", "invalid_credentials", "refresh_token_reused": 401
    case "device_revoked", "not_a_member", "forbidden": 403
    case "not_found", "user_not_found", "chat_not_found", "blob_not_found", "call_not_found": 404
    case "method_not_allowed": 405
    case "no_key_package", "stale_epoch", "commit_incomplete", "superseded", "account_exists",
      "upload_incomplete":
      409
    case "request_timeout": 408
    case "blob_expired": 410
    case "device_not_enrolled": 412
    case "message_too_large", "attachment_too_large": 413
    case "unsupported_media_type": 415
    case "chat_is_direct", "group_full", "idempotency_mismatch", "weak_password": 422
    case "rate_limited": 429
    case "unavailable": 503
    default: 500
    }
  }

  private func responses(_ route: Route, _ json: inout JSONWriter) {
    json.key(route.answer == nil ? "204" : "200")
    json.object { json in
      json.member("description", "done")
      requestID(&json)
      if let answer = route.answer { content(answer, &json) }
    }
    for (status, codes) in Self.codes(of: route).sorted(by: { $0.key < $1.key }) {
      json.key(String(status))
      json.object { json in
        json.member("description", codes.sorted().joined(separator: ", "))
        requestID(&json)
        content(.error, &json)
      }
    }
  }

  private func requestID(_ json: inout JSONWriter) {
    json.key("headers")
    json.object { json in
      json.key("Request-Id")
      json.object { json in
        json.member("required", true)
        json.key("schema")
        json.object { $0.member("type", "string") }
      }
    }
  }

  private func content(_ record: Shape.Record, _ json: inout JSONWriter) {
    json.key("content")
    json.object { json in
      json.key("application/json")
      json.object { json in
        json.key("schema")
        reference(record, &json)
      }
    }
  }

  // MARK: Schemas

  private func reference(_ record: Shape.Record, about: String = "", _ json: inout JSONWriter) {
    guard let name = record.name else { return write(record, about: about, &json) }
    json.object {
      // Beside a reference a description stands for that place (JSON Schema 2020-12, as OpenAPI 3.1 has it).
      $0.member("$ref", "#/components/schemas/\(name)")
      if !about.isEmpty { $0.member("description", about) }
    }
  }

  private func write(_ record: Shape.Record, about: String = "", _ json: inout JSONWriter) {
    json.object { json in
      json.member("type", "object")
      if !about.isEmpty { json.member("description", about) }
      let required = record.fields.filter(\.isRequired).map(\.name)
      if !required.isEmpty { json.member("required", each: required) { $0.string($1) } }
      json.key("properties")
      json.object { json in
        for field in record.fields {
          json.key(field.name)
          write(field.shape, about: field.about, &json)
        }
      }
    }
  }

  private func write(_ shape: Shape, about: String = "", _ json: inout JSONWriter) {
    switch shape {
    case .object(let record): return reference(record, about: about, &json)
    default: break
    }
    json.object { json in
      if !about.isEmpty { json.member("description", about) }
      switch shape {
      case .text(let count):
        json.member("type", "string")
        json.member("maxLength", count)
      case .choice(let words):
        json.member("type", "string")
        json.member("enum", each: words) { $0.string($1) }
      case .id(let prefix):
        json.member("type", "string")
        json.member(
          "pattern", "^\(prefix)_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
      case .bytes(let range):
        json.member("type", "string")
        json.member("contentEncoding", "base64url")
        json.member(
          "pattern",
          "^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?$")
        json.member("minLength", (range.lowerBound * 4 + 2) / 3)
        json.member("maxLength", (range.upperBound * 4 + 2) / 3)
      case .hex(let range):
        json.member("type", "string")
        json.member("pattern", "^([0-9a-fA-F]{2})+$")
        json.member("minLength", range.lowerBound * 2)
        json.member("maxLength", range.upperBound * 2)
      case .integer(let range):
        json.member("type", "integer")
        json.member("minimum", range.lowerBound)
        json.member("maximum", range.upperBound)
      case .number: json.member("type", "number")
      case .boolean: json.member("type", "boolean")
      case .list(let element, let count):
        json.member("type", "array")
        json.member("maxItems", count)
        json.key("items")
        write(element, &json)
      case .object: break
      }
    }
  }
}

extension RouteTable {
  /// The document itself, of all routes but this one.
  static func documentRoutes(_ tokens: DeviceTokens, others: [Route] = []) -> [Route] {
    let text = OpenAPIDocument(table: RouteTable(devices: tokens, others: others)).text()
    return others + [
      Route(
        "GET", "/v1/openapi.json", "openAPI", "This document", access: .open, answer: .init([]),
        service: .shell { _ in
          HTTPResponse(status: 200, headers: [.init("content-type", "application/json")], body: text)
        })
    ]
  }
}
