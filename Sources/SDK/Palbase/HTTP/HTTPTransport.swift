package import PalbeUnits

/// Carries one HTTP request to a server and its answer back. On Linux `CurlTransport` does.
package protocol HTTPTransport: Sendable {
  /// Sends `request`; the answer's status may be any. Cancelling the task ends the transfer.
  func send(_ request: TransportRequest) async throws(TransportFault) -> TransportAnswer
}

/// Why there is no answer.
package enum TransportFault: Error, Sendable, Equatable {
  /// The task was cancelled.
  case cancelled
  /// - `mayHaveArrived`: the server may have the request, or a part of it.
  case failed(NetworkFault, mayHaveArrived: Bool)
}

/// A request as it goes out.
package struct TransportRequest: Sendable {
  /// A header.
  package struct Field: Sendable, Hashable {
    package var name: String
    package var value: String
    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// What is sent.
  package enum Body: Sendable {
    case none
    case bytes([UInt8])
    /// A part of a file, read while it is sent.
    case file(path: String, range: Range<Int64>)
  }

  /// Where the body of the answer goes.
  package enum Sink: Sendable {
    /// A longer one is `answerTooLarge`.
    case memory(limit: Int)
    /// Of a 200 or 206, into a file, written while it comes; of any other status, into memory. With `resumes`, what
    /// the file holds is not fetched again: a `Range` asks for the rest, and a server that sends everything starts
    /// the file anew.
    case file(path: String, limit: Int64, resumes: Bool)
  }

  package var method: String
  /// Absolute, percent-encoded.
  package var url: String
  package var headers: [Field] = []
  package var body = Body.none
  package var sink = Sink.memory(limit: 8 << 20)
  /// From the name's lookup to the end of the TLS handshake.
  package var connectTimeout = TimeDelta.seconds(10)
  /// For everything; nil for transfers whose length is not known.
  package var timeout: TimeDelta? = .seconds(30)
  /// A transfer that moves nothing for this long is given up.
  package var stallTimeout = TimeDelta.seconds(30)
  /// Called from a thread of the transport, a few times a second; it must not block.
  package var progress: (@Sendable (TransferProgress) -> Void)?

  package init(method: String, url: String, headers: [Field] = [], body: Body = .none) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// How far a transfer is, in bytes of bodies.
package struct TransferProgress: Sendable, Equatable {
  package var sent: Int64
  package var sendTotal: Int64
  package var received: Int64
  /// 0 while unknown.
  package var receiveTotal: Int64
}

/// An answer.
package struct TransportAnswer: Sendable {
  package var status: Int
  /// Names in lower case; several values joined by ", ".
  package var headers: [String: String]
  /// Empty when it went into a file.
  package var body: [UInt8]

  package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
