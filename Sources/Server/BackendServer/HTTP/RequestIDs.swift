import PalbeWebServer
import Synchronization

/// Names of requests, for logs on both sides. A client may give its own.
package final class RequestIDs: Sendable {
  private static let header = "request-id"
  private let prefix: UInt64
  private let count = Atomic<UInt64>(0)

  package init() {
    var generator = SystemRandomNumberGenerator()
    prefix = generator.next()
  }

  /// A request under the name that its answer has to have: who is handed it finds that in its headers.
  ///
  /// The client's, when that has 1 to 64 characters of A-Z, a-z, 0-9, ".", "_" and "-"; else a new one.
  package func named(_ request: HTTPRequest) -> (request: HTTPRequest, id: String) {
    let place = request.headers.firstIndex { $0.name == Self.header }
    if let place, Self.isPlain(request.headers[place].value) {
      return (request, request.headers[place].value)
    }
    let number = count.wrappingAdd(1, ordering: .relaxed).newValue
    let id = String(prefix, radix: 36) + "-" + String(number, radix: 36)
    var request = request
    if let place { request.headers[place].value = id } else { request.headers.append(.init(Self.header, id)) }
    return (request, id)
  }

  private static func isPlain(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case 48...57, 65...90, 97...122, 45, 46, 95: true
        default: false
        }
      }
  }

  /// An answer with the name of a request that was named.
  package static func labelled(_ response: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
    guard let id = request.header(header) else { return response }
    var response = response
    response.headers.append(.init(header, id))
    return response
  }
}
