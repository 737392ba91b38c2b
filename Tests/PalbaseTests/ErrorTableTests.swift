import Foundation
import PalbeBackendCore
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase

/// One failure of each kind, in the order of `position`.
private let serverFailures: [BackendFailure] = {
  var random = RandomSource(seed: 1)
  let user = UserID(at: WallTime(microseconds: 0), using: &random)
  return [
    .notSignedIn, .sessionExpired, .deviceNotEnrolled, .deviceRevoked, .chatIsDirect, .notAMember, .forbidden,
    .userNotFound, .chatNotFound, .blobNotFound, .callNotFound, .callFull, .callEnded, .noKeyPackage(user),
    .staleEpoch(head: 7), .commitIncomplete(devices: []), .messageTooLarge(limit: 1),
    .attachmentTooLarge(limit: 1), .groupFull(limit: 1), .blobExpired, .rateLimited(retryAfter: .seconds(1)),
    .unavailable(.full), .invalidRequest(.range), .superseded, .idempotencyMismatch,
  ]
}()

/// Does not compile when the server learns another failure, so that the list above and the table follow.
private func position(_ failure: BackendFailure) -> Int {
  switch failure {
  case .notSignedIn: 0
  case .sessionExpired: 1
  case .deviceNotEnrolled: 2
  case .deviceRevoked: 3
  case .chatIsDirect: 4
  case .notAMember: 5
  case .forbidden: 6
  case .userNotFound: 7
  case .chatNotFound: 8
  case .blobNotFound: 9
  case .callNotFound: 10
  case .callFull: 11
  case .callEnded: 12
  case .noKeyPackage: 13
  case .staleEpoch: 14
  case .commitIncomplete: 15
  case .messageTooLarge: 16
  case .attachmentTooLarge: 17
  case .groupFull: 18
  case .blobExpired: 19
  case .rateLimited: 20
  case .unavailable: 21
  case .invalidRequest: 22
  case .superseded: 23
  case .idempotencyMismatch: 24
  }
}

@Suite("Errors: the table of requirements 2.2 (S0-5, S0-134)")
struct ErrorTableTests {
  @Test("S0-134: every code of the server is in the SDK's table, with the same status")
  func serverCodes() {
    #expect(serverFailures.map(position) == Array(0..<serverFailures.count))
    for failure in serverFailures {
      let facts = FailureFacts.table[FailureCode(rawValue: failure.code)]
      #expect(facts != nil, "\(failure.code)")
      #expect(facts?.status == failure.status, "\(failure.code)")
      #expect(facts?.origin != .client, "\(failure.code)")
    }
  }

  /// Requirements 2.2, by hand: code, status (0 for none), origin, retry.
  private static let table: [(FailureCode, Int, FailureOrigin, FailureRetry)] = [
    ("not_signed_in", 401, .both, .afterSignIn), ("session_expired", 401, .server, .afterSignIn),
    ("device_not_enrolled", 412, .server, .handled), ("device_revoked", 403, .server, .no),
    ("chat_is_draft", 422, .client, .afterSend), ("chat_is_direct", 422, .both, .no),
    ("chat_is_group", 422, .client, .no), ("not_a_member", 403, .server, .no),
    ("forbidden", 403, .server, .no), ("user_not_found", 404, .server, .no),
    ("chat_not_found", 404, .server, .no), ("blob_not_found", 404, .server, .no),
    ("call_not_found", 404, .server, .no), ("no_key_package", 409, .server, .later),
    ("stale_epoch", 409, .server, .handled), ("rebase_exhausted", 409, .client, .yes),
    ("commit_incomplete", 409, .server, .handled), ("duplicate_message", 200, .server, .handled),
    ("message_too_large", 413, .both, .no), ("attachment_too_large", 413, .both, .no),
    ("group_full", 422, .server, .no), ("blob_expired", 410, .server, .no),
    ("integrity_failed", 0, .client, .handled), ("rate_limited", 429, .server, .yes),
    ("account_busy", 0, .client, .yes), ("store_unavailable", 0, .client, .no),
    ("undecryptable", 0, .client, .no), ("media_unavailable", 0, .client, .no),
    ("no_sibling_to_transfer", 409, .client, .no), ("call_full", 409, .server, .later),
    ("call_ended", 410, .server, .no), ("unavailable", 503, .server, .yes),
  ]

  @Test("2.2: the whole table")
  func wholeTable() {
    for (code, status, origin, retry) in Self.table {
      let facts = FailureFacts.table[code]
      #expect(facts?.status ?? 0 == status, "\(code)")
      #expect(facts?.origin == origin, "\(code)")
      #expect(facts?.retry == retry, "\(code)")
      #expect(facts?.message.isEmpty == false && facts?.advice.isEmpty == false, "\(code)")
    }
  }

  @Test("2.2, S0-25: a device that is not enrolled is told to sign in, not to call what does not exist")
  func deviceNotEnrolled() {
    let error = BackendError.client(.deviceNotEnrolled)
    #expect(error.advice.hasPrefix("Sign in; the device enrols itself"))
    #expect(error.status == 412)
  }

  @Test("S0-5: the error is found behind an untyped throw and compares by words and by literals")
  func untyped() {
    let thrown: any Error = BackendError.client(.chatIsDraft)
    #expect((thrown as? BackendError)?.code == .chatIsDraft)
    #expect((thrown as? BackendError)?.code == "chat_is_draft")
    #expect(thrown.localizedDescription == "The chat has not begun yet.")
    #expect(BackendError.accountBusy.isRetryable && !BackendError.integrity.isRetryable)
    #expect(BackendError.mediaUnavailable.code == "media_unavailable")
    #expect(
      BackendError.storeUnavailable(.full).message
        == "The data on this device cannot be used. The disk is full.")
  }
}

@Suite("Errors: bodies of answers")
struct ErrorBodyTests {
  private func failure(_ status: Int, _ body: String, _ headers: [String: String] = [:]) -> ServerFailure {
    ServerFailure(status: status, headers: headers, body: Array(body.utf8))
  }

  @Test("2.2: a whole body: code, message, request id, wait and details")
  func whole() {
    let failure = failure(
      409,
      """
      {"code":"stale_epoch","status":409,"message":"stale","request_id":"r-1","retry_after":1.5,
       "details":{"head_epoch":18446744073709551,"devices":["mdv_1"]}}
      """)
    #expect(failure.code == .staleEpoch)
    #expect(failure.status == 409)
    #expect(failure.message == "stale")
    #expect(failure.requestId == "r-1")
    #expect(failure.retryAfter == .milliseconds(1_500))
    #expect(failure.detail("head_epoch") == UInt64(18_446_744_073_709_551))
    #expect(failure.detail("devices") == ["mdv_1"])
    #expect(failure.detail("head_epoch", as: String.self) == nil)
    #expect(failure.detail("missing", as: Int.self) == nil)
  }

  @Test("2.2: a code that this SDK does not know is kept, and its status says whether to try again")
  func unknownCode() {
    let teapot = failure(418, #"{"code":"teapot","message":"short and stout"}"#)
    #expect(teapot.code == "teapot" && teapot.retry == .no && teapot.message == "short and stout")
    #expect(failure(503, #"{"code":"moon_phase"}"#).retry == .yes)
  }

  @Test("2.2: an answer of a proxy, not of the server, is understood by its status")
  func proxies() {
    #expect(failure(502, "<html>bad gateway</html>").code == .unavailable)
    #expect(failure(429, "", ["retry-after": "7"]).retryAfter == .seconds(7))
    #expect(failure(429, "").code == .rateLimited)
    #expect(failure(404, "no").code == "http_404")
    #expect(failure(500, "", ["request-id": "r-9"]).requestId == "r-9")
  }

  @Test(
    "2.2: members of wrong types, wild values and garbage leave what is right",
    arguments: [
      #"{"code":7,"message":[],"request_id":{},"retry_after":"x","details":[1]}"#,
      #"{"code":"Not A Code!","retry_after":-3}"#, "[]", "null", "{", "\u{0}", #"{"code":""}"#,
    ])
  func garbage(body: String) {
    let failure = failure(503, body)
    #expect(failure.code == .unavailable && failure.retryAfter == nil && failure.details.isEmpty)
  }

  @Test("2.2: what a person is shown is one bounded line; a wait is at most a day")
  func bounded() {
    let long = String(repeating: "x", count: 5_000)
    let failure = failure(
      400, "{\"code\":\"invalid_request\",\"message\":\"a\\u001b[2J\\n\(long)\",\"retry_after\":1e300}")
    #expect(failure.message.count == 1_024 && failure.message.hasPrefix("a [2J x"))
    #expect(failure.retryAfter == .seconds(86_400))
    let deep = String(repeating: "[", count: 60_000)
    #expect(self.failure(500, "{\"details\":\(deep)").code == "http_500")
  }

  @Test("2.2: every prefix of a body, and every byte of it changed, is an answer without a trap")
  func everyPrefix() {
    let body = Array(#"{"code":"not_a_member","message":"gone","details":{"a":[1,2.5,null,true]}}"#.utf8)
    for count in 0..<body.count {
      #expect(ServerFailure(status: 403, headers: [:], body: Array(body[..<count])).code == "http_403")
    }
    for index in body.indices {
      for byte in [UInt8(0), 0x22, 0x5c, 0x7d, 0xff] {
        var changed = body
        changed[index] = byte
        #expect(ServerFailure(status: 403, headers: [:], body: changed).status == 403)
      }
    }
  }
}

@Suite("Errors: what the server's document says")
struct ErrorDocumentTests {
  @Test("S0-134: every code that docs/openapi.json names is in the table, under its status")
  func documentedCodes() throws {
    let document =
      try JSONSerialization.jsonObject(with: Vectors.golden("docs/openapi.json")) as? [String: Any]
    let paths = try #require(document?["paths"] as? [String: [String: Any]])
    var seen: Set<String> = []
    for operation in paths.values.flatMap(\.values) {
      let responses = (operation as? [String: Any])?["responses"] as? [String: [String: Any]] ?? [:]
      for (status, response) in responses {
        guard let status = Int(status), status >= 400, let text = response["description"] as? String else {
          continue
        }
        for code in text.split(separator: ", ") where code.allSatisfy({ $0.isLowercase || $0 == "_" }) {
          seen.insert(String(code))
          // A body of unknown length and a head that is too long have statuses of HTTP's own.
          if [411, 431].contains(status), code == "invalid_request" { continue }
          #expect(
            FailureFacts.table[FailureCode(rawValue: String(code))]?.status == status, "\(code) \(status)")
        }
      }
    }
    #expect(seen.count > 15)
  }
}
