public import Foundation

/// Every failure of `pb`: what the server refuses, and what happens on the way to it.
///
///     catch let error as BackendError {
///       if error.code == .rateLimited { … }         // a word that never changes
///       show(error.localizedDescription)            // one English sentence
///       log(error.advice)                           // what a developer does about it
///     }
///
/// A cancelled task throws `CancellationError`, not this.
public enum BackendError: Error, Sendable, Equatable {
  /// A refusal, mostly the server's.
  case server(ServerFailure)
  /// The configuration is missing or wrong.
  case notConfigured(ConfigurationFault)
  /// No answer came.
  case unreachable(NetworkFault)
  /// An answer came that is not one of this protocol.
  case unexpectedAnswer(requestId: String?)
  /// The stores of this device cannot be used.
  case storeUnavailable(StoreFault)
  /// Another process of this app uses the account, and did not let go within 15 s.
  case accountBusy
  /// The bytes of an attachment are not those that were sent.
  case integrity
  /// No media engine is registered.
  case mediaUnavailable

  /// The word that a program compares.
  public var code: FailureCode {
    switch self {
    case .server(let failure): failure.code
    case .notConfigured: .notConfigured
    case .unreachable: .unreachable
    case .unexpectedAnswer: .unexpectedAnswer
    case .storeUnavailable: .storeUnavailable
    case .accountBusy: .accountBusy
    case .integrity: .integrityFailed
    case .mediaUnavailable: .mediaUnavailable
    }
  }

  /// The HTTP status of a refusal.
  public var status: Int? {
    guard case .server(let failure) = self else { return nil }
    return failure.status
  }

  /// Names the request in the server's log.
  public var requestId: String? {
    switch self {
    case .server(let failure): failure.requestId
    case .unexpectedAnswer(let requestId): requestId
    default: nil
    }
  }

  /// When to try again at the earliest, if the server said so.
  public var retryAfter: Duration? {
    guard case .server(let failure) = self else { return nil }
    return failure.retryAfter
  }

  /// Who noticed it.
  public var origin: FailureOrigin { facts.origin }
  /// Whether the same call can succeed later.
  public var retry: FailureRetry { facts.retry }
  /// The same call may succeed when it is repeated after a while.
  public var isRetryable: Bool { retry == .yes }
  /// What a developer does about it.
  public var advice: String { facts.advice }

  private var facts: FailureFacts { FailureFacts.facts(of: code, status: status) }

  /// A refusal by the SDK itself, in the server's shape.
  package static func client(_ code: FailureCode) -> BackendError { .server(ServerFailure(client: code)) }
}

extension BackendError: LocalizedError, CustomStringConvertible {
  /// One English sentence.
  public var errorDescription: String? { message }

  /// One English sentence.
  public var message: String {
    switch self {
    case .server(let failure): failure.message
    case .notConfigured(let fault): "\(facts.message) \(fault)"
    case .unreachable(let fault): "\(facts.message) \(fault)"
    case .storeUnavailable(let fault): "\(facts.message) \(fault)"
    case .unexpectedAnswer, .accountBusy, .integrity, .mediaUnavailable: facts.message
    }
  }

  /// The code, the sentence and the request.
  public var description: String {
    "\(code): \(message)" + (requestId.map { " (request \($0))" } ?? "")
  }
}

/// Why no answer came.
public enum NetworkFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// Nothing listens there, or there is no network.
  case noConnection
  /// The server's name is unknown.
  case unknownHost
  /// The server's certificate is not trusted, or it speaks no TLS.
  case notTrusted
  /// The server took too long.
  case timedOut
  /// The connection broke.
  case connectionLost
  /// The answer was longer than allowed.
  case answerTooLarge
  /// A local file that is sent or filled could not be read or written; the system's error number.
  case file(Int32)
  /// Anything else, in the library's words.
  case other(String)

  /// One sentence.
  public var description: String {
    switch self {
    case .noConnection: "Nothing answers at its address."
    case .unknownHost: "Its name is unknown."
    case .notTrusted: "Its certificate is not trusted."
    case .timedOut: "It took too long."
    case .connectionLost: "The connection broke."
    case .answerTooLarge: "Its answer is too long."
    case .file(let number): "A local file could not be used (error \(number))."
    case .other(let reason): "\(reason)."
    }
  }
}

/// Why a store of this device cannot be used.
public enum StoreFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// No room on the disk.
  case full
  /// The key that the data is sealed with is missing or unreadable.
  case keyMissing
  /// The passphrase does not open the key.
  case wrongPassphrase
  /// The bytes are damaged; the name of the record.
  case corrupted(String)
  /// A newer version of the app wrote it.
  case newerSchema
  /// Another failure of the system; its error number.
  case system(Int32)

  /// One sentence.
  public var description: String {
    switch self {
    case .full: "The disk is full."
    case .keyMissing: "The key that it is sealed with is missing."
    case .wrongPassphrase: "The passphrase does not open its key."
    case .corrupted(let name): "The record \(name) is damaged."
    case .newerSchema: "A newer version of the app wrote it."
    case .system(let number): "The system refused (error \(number))."
    }
  }
}

/// Why there is no configuration.
public enum ConfigurationFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// No file was found at any of these places.
  case missing(searched: [String])
  /// The file is not a property list of a dictionary, or cannot be read.
  case unreadable(file: String)
  /// A key that must be there is not.
  case keyMissing(key: String, file: String)
  /// A key's value is not what it should be.
  case wrongValue(key: String, file: String, wanted: String)

  /// One sentence.
  public var description: String {
    switch self {
    case .missing(let searched): "There is no configuration at \(searched.joined(separator: ", "))."
    case .unreadable(let file): "\(file) is not a property list."
    case .keyMissing(let key, let file): "\(key) is missing in \(file)."
    case .wrongValue(let key, let file, let wanted): "\(key) in \(file) must be \(wanted)."
    }
  }
}
