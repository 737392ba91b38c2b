import CPalbeCurl
import Foundation
import PalbeUnits
import Synchronization

/// One transfer. Other threads wait for it and cancel it; the rest belongs to the transport's thread.
final class CurlTransfer: @unchecked Sendable {
  typealias Outcome = Result<TransportAnswer, TransportFault>

  private let request: TransportRequest
  private let waiter = Mutex<CheckedContinuation<Outcome, Never>?>(nil)
  private let cancelled = Mutex(false)

  // The transport's thread.
  private(set) var easy: UnsafeMutableRawPointer?
  private var fields: UnsafeMutablePointer<curl_slist>?
  private var sent: UnsafeMutableBufferPointer<UInt8>?
  private var source: FileSource?
  private var file: FileSink?
  private var head = AnswerHead()
  private var body: [UInt8] = []
  private var fault: NetworkFault?

  init(_ request: TransportRequest) { self.request = request }

  // MARK: Any thread

  func wait(_ continuation: CheckedContinuation<Outcome, Never>) { waiter.withLock { $0 = continuation } }

  func cancel() { cancelled.withLock { $0 = true } }

  var isCancelled: Bool { cancelled.withLock { $0 } }

  /// Gives the waiter its outcome; only the first counts.
  func finish(_ outcome: Outcome) { waiter.withLock { $0.take() }?.resume(returning: outcome) }

  // MARK: The transport's thread

  /// The handle to add; nil when the transfer ended here.
  func start(authorities: String?) -> UnsafeMutableRawPointer? {
    guard easy == nil else { return nil }
    guard let easy = curl_easy_init() else {
      finish(.failure(.failed(.other("no memory"), mayHaveArrived: false)))
      return nil
    }
    self.easy = easy
    do throws(NetworkFault) {
      try prepare(easy, authorities)
      return easy
    } catch {
      free()
      finish(.failure(.failed(error, mayHaveArrived: false)))
      return nil
    }
  }

  private func prepare(_ easy: UnsafeMutableRawPointer, _ authorities: String?) throws(NetworkFault) {
    let own = Unmanaged.passUnretained(self).toOpaque()
    palbe_curl_set_text(easy, CURLOPT_URL, request.url)
    palbe_curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    palbe_curl_set_number(easy, CURLOPT_NOSIGNAL, 1)
    palbe_curl_set_number(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    if let authorities { palbe_curl_set_text(easy, CURLOPT_CAINFO, authorities) }
    palbe_curl_set_number(easy, CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.curlMilliseconds)
    if let timeout = request.timeout {
      palbe_curl_set_number(easy, CURLOPT_TIMEOUT_MS, timeout.curlMilliseconds)
    }
    palbe_curl_set_number(easy, CURLOPT_LOW_SPEED_LIMIT, 1)
    palbe_curl_set_number(easy, CURLOPT_LOW_SPEED_TIME, max(1, request.stallTimeout.curlMilliseconds / 1_000))
    palbe_curl_set_bytes(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, user in
      CurlTransfer.from(user).receiveHead(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    palbe_curl_set_pointer(easy, CURLOPT_HEADERDATA, own)
    palbe_curl_set_bytes(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, user in
      CurlTransfer.from(user).receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    palbe_curl_set_pointer(easy, CURLOPT_WRITEDATA, own)
    if request.progress != nil {
      palbe_curl_set_number(easy, CURLOPT_NOPROGRESS, 0)
      palbe_curl_set_progress(easy) { user, receiveTotal, received, sendTotal, sent in
        CurlTransfer.from(user).request.progress?(
          TransferProgress(
            sent: Int64(sent), sendTotal: Int64(sendTotal), received: Int64(received),
            receiveTotal: Int64(receiveTotal)))
        return 0
      }
      palbe_curl_set_pointer(easy, CURLOPT_XFERINFODATA, own)
    }
    var headers = request.headers
    if case .file(let path, let limit, let resumes) = request.sink {
      let sink = FileSink(path: path, limit: limit, resumes: resumes)
      file = sink
      if let range = sink.range { headers.append(.init("Range", range)) }
    }
    try prepareBody(easy, own)
    // No "Expect: 100-continue": it costs a round trip, and a refusal comes as well without it.
    headers.append(.init("Expect", ""))
    for field in headers where field.isOneLine {
      guard let longer = curl_slist_append(fields, "\(field.name): \(field.value)") else { continue }
      fields = longer
    }
    palbe_curl_set_pointer(easy, CURLOPT_HTTPHEADER, fields)
  }

  private func prepareBody(
    _ easy: UnsafeMutableRawPointer, _ own: UnsafeMutableRawPointer
  ) throws(NetworkFault) {
    switch request.body {
    case .none:
      if request.method == "HEAD" { palbe_curl_set_number(easy, CURLOPT_NOBODY, 1) }
      if request.method == "POST" || request.method == "PUT" {
        palbe_curl_set_text(easy, CURLOPT_COPYPOSTFIELDS, "")
      }
    case .bytes(let bytes):
      let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, bytes.count))
      _ = buffer.initialize(from: bytes)
      sent = buffer
      palbe_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, Int64(bytes.count))
      palbe_curl_set_pointer(easy, CURLOPT_POSTFIELDS, buffer.baseAddress)
    case .file(let path, let range):
      source = try FileSource(path: path, range: range)
      palbe_curl_set_number(easy, CURLOPT_UPLOAD, 1)
      palbe_curl_set_size(easy, CURLOPT_INFILESIZE_LARGE, Int64(range.count))
      palbe_curl_set_bytes(easy, CURLOPT_READFUNCTION) { bytes, size, count, user in
        CurlTransfer.from(user).read(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
      }
      palbe_curl_set_pointer(easy, CURLOPT_READDATA, own)
      palbe_curl_set_seek(easy) { user, offset, origin in
        origin == SEEK_SET && CurlTransfer.from(user).source?.seek(to: Int64(offset)) == true ? 0 : 1
      }
      palbe_curl_set_pointer(easy, CURLOPT_SEEKDATA, own)
    }
    palbe_curl_set_text(easy, CURLOPT_CUSTOMREQUEST, request.method)
  }

  private static func from(_ user: UnsafeMutableRawPointer?) -> CurlTransfer {
    Unmanaged<CurlTransfer>.fromOpaque(user!).takeUnretainedValue()
  }

  private func receiveHead(_ line: UnsafeRawBufferPointer) -> Int {
    guard head.append(line) else {
      fault = .answerTooLarge
      return -1
    }
    return line.count
  }

  /// Fewer than came ends the transfer.
  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    do throws(NetworkFault) {
      if let file, file.takes(head) {
        try file.write(bytes, head)
      } else {
        guard body.count + bytes.count <= memoryLimit else { throw .answerTooLarge }
        body.append(contentsOf: bytes)
      }
      return bytes.count
    } catch {
      fault = error
      return 0
    }
  }

  private var memoryLimit: Int {
    guard case .memory(let limit) = request.sink else { return ServerFailure.bodyLimit }
    return limit
  }

  private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let count = source?.read(into: buffer) else {
      fault = source?.fault
      return Int(CURL_READFUNC_ABORT)
    }
    return count
  }

  /// What became of it.
  func outcome(_ result: CURLcode, _ easy: UnsafeMutableRawPointer) -> Outcome {
    if result == CURLE_OK {
      do throws(NetworkFault) {
        if let file, file.takes(head) { try file.finish(head) }
        return .success(TransportAnswer(status: head.status, headers: head.fields, body: body))
      } catch {
        return .failure(.failed(error, mayHaveArrived: true))
      }
    }
    let wasSent = palbe_curl_get_number(easy, CURLINFO_REQUEST_SIZE) > 0
    return .failure(.failed(fault ?? Self.fault(result), mayHaveArrived: wasSent))
  }

  private static func fault(_ result: CURLcode) -> NetworkFault {
    switch result {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .unknownHost
    case CURLE_COULDNT_CONNECT: .noConnection
    case CURLE_OPERATION_TIMEDOUT: .timedOut
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CACERT_BADFILE: .notTrusted
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE: .connectionLost
    default: .other(String(cString: curl_easy_strerror(result)))
    }
  }

  /// Once it is out of the multi handle.
  func free() {
    if let easy { curl_easy_cleanup(easy) }
    easy = nil
    curl_slist_free_all(fields)
    fields = nil
    sent?.deallocate()
    sent = nil
    source = nil
    file = nil
  }
}

/// The status and headers of an answer, line by line.
struct AnswerHead {
  private(set) var status = 0
  private(set) var fields: [String: String] = [:]
  private var byteCount = 0
  private static let limit = 65_536

  /// False when the head is too long.
  mutating func append(_ line: UnsafeRawBufferPointer) -> Bool {
    byteCount += line.count
    guard byteCount <= Self.limit else { return false }
    let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    if text.hasPrefix("HTTP/") {
      // Another head: the one before was 100, or a proxy's.
      let parts = text.split(separator: " ", maxSplits: 2)
      status = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
      fields = [:]
    } else if let colon = text.firstIndex(of: ":") {
      let name = text[..<colon].lowercased()
      let value = text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
      fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }
    return true
  }
}

extension TransportRequest.Field {
  /// Nothing in it would break out of its line.
  var isOneLine: Bool {
    !name.isEmpty && name.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != 58 }
      && value.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
  }
}

extension TimeDelta {
  /// libcurl's 0 is no limit.
  fileprivate var curlMilliseconds: Int { Int(clamping: max(1, wholeMilliseconds)) }
}
