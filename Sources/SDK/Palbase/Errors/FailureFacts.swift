/// Who notices a failure.
public enum FailureOrigin: String, Sendable {
  /// This device, before or without asking the server.
  case client
  /// The server.
  case server
  /// Either.
  case both
}

/// Whether the same call can succeed later.
public enum FailureRetry: String, Sendable {
  /// It will fail again.
  case no
  /// Again after a while, or after `ServerFailure.retryAfter`.
  case yes
  /// When something else has changed: another person's device, room in a call.
  case later
  /// When the user has signed in.
  case afterSignIn
  /// When the chat's first message is sent.
  case afterSend
  /// The SDK has already done what can be done, and it did not help.
  case handled
}

/// What the table of errors says of a code.
struct FailureFacts: Sendable {
  /// The HTTP status; nil for what never comes from a server.
  var status: Int?
  var origin: FailureOrigin
  var retry: FailureRetry
  /// What happened, for a person.
  var message: String
  /// What a developer does about it. It names only API that exists.
  var advice: String

  init(
    _ status: Int?, _ origin: FailureOrigin, _ retry: FailureRetry, _ message: String, _ advice: String
  ) {
    self.status = status
    self.origin = origin
    self.retry = retry
    self.message = message
    self.advice = advice
  }

  /// The whole table.
  static let table: [FailureCode: FailureFacts] = [
    .notSignedIn: FailureFacts(
      401, .both, .afterSignIn, "Nobody is signed in.", "Sign the user in with pb.auth.signIn, then repeat."),
    .sessionExpired: FailureFacts(
      401, .server, .afterSignIn, "The session is over.",
      "Ask the user to sign in again with pb.auth.signIn; what is stored on this device stays."),
    .refreshTokenReused: FailureFacts(
      401, .server, .afterSignIn, "The session was ended because its token was used twice.",
      "Ask the user to sign in again; a copy of this device's data may be in use somewhere else."),
    .invalidCredentials: FailureFacts(
      401, .server, .no, "The address or the password is wrong.", "Let the user type them again."),
    .accountExists: FailureFacts(
      409, .server, .no, "There is an account with this address.", "Use pb.auth.signIn for this address."),
    .weakPassword: FailureFacts(
      422, .server, .no, "The password is too easy to guess.", "Ask for a longer one."),
    .deviceNotEnrolled: FailureFacts(
      412, .server, .handled, "The server does not know this device.",
      "Sign in; the device enrols itself. It was tried once by itself and did not help."),
    .deviceRevoked: FailureFacts(
      403, .server, .no, "This device was removed from the account.",
      "Tell the user; messages on this device stay readable. Signing in again enrols it anew."),
    .superseded: FailureFacts(
      409, .server, .no, "A newer connection of this device took over.",
      "Nothing to do in the process that lost; the newer one goes on."),
    .chatIsDraft: FailureFacts(
      422, .client, .afterSend, "The chat has not begun yet.", "Send a first message, then repeat."),
    .chatIsDirect: FailureFacts(
      422, .both, .no, "A direct chat keeps its two people and has no name.",
      "Make a group chat for more people."),
    .chatIsGroup: FailureFacts(
      422, .client, .no, "A group has a safety number for each member, not one.",
      "Ask for the number with one member."),
    .notAMember: FailureFacts(
      403, .server, .no, "The user is not in this chat.", "Show the chat as left; its history stays."),
    .forbidden: FailureFacts(
      403, .server, .no, "The user's role does not allow this.", "Offer it to owners and admins only."),
    .userNotFound: FailureFacts(404, .server, .no, "There is no such user.", "Check the user id."),
    .chatNotFound: FailureFacts(404, .server, .no, "There is no such chat.", "Check the chat id."),
    .blobNotFound: FailureFacts(
      404, .server, .no, "The attachment is not there.", "Show the message without it."),
    .callNotFound: FailureFacts(404, .server, .no, "There is no such call.", "Take the call off the screen."),
    .noKeyPackage: FailureFacts(
      409, .server, .later, "This person has no device that can be added now.",
      "Try again when they have opened the app."),
    .staleEpoch: FailureFacts(
      409, .server, .handled, "The chat changed at the same time.",
      "The SDK follows and repeats by itself; when this comes out, try again."),
    .rebaseExhausted: FailureFacts(
      409, .client, .yes, "The chat kept changing while this was sent.", "Try again after a moment."),
    .commitIncomplete: FailureFacts(
      409, .server, .handled, "The change left something out.",
      "The SDK completes and repeats by itself; when this comes out, try again."),
    .duplicateMessage: FailureFacts(
      200, .server, .handled, "The message was sent before.", "Nothing: the first receipt is the answer."),
    .messageTooLarge: FailureFacts(
      413, .both, .no, "The message is too long.", "Send it in parts, or as a file."),
    .attachmentTooLarge: FailureFacts(
      413, .both, .no, "The file is too large.", "Send a smaller one."),
    .groupFull: FailureFacts(
      422, .server, .no, "The group is full.", "Remove somebody first, or make another group."),
    .blobExpired: FailureFacts(
      410, .server, .no, "The attachment is no longer kept.", "Ask the sender to send it again."),
    .uploadIncomplete: FailureFacts(
      409, .server, .handled, "Not all of the attachment has arrived.",
      "The SDK sends the rest by itself; when this comes out, try again."),
    .uploadOffsetMismatch: FailureFacts(
      409, .server, .handled, "A part of the attachment is missing.",
      "The SDK asks what has arrived and goes on by itself; when this comes out, try again."),
    .integrityFailed: FailureFacts(
      nil, .client, .handled, "The bytes are not those that were sent.",
      "The SDK fetched them twice; ask the sender to send them again."),
    .rateLimited: FailureFacts(
      429, .server, .yes, "Too many requests.", "Wait for retryAfter, then repeat."),
    .accountBusy: FailureFacts(
      nil, .client, .yes, "Another process of this app uses the account.",
      "Keep what is on the screen and try again; an extension lets go within seconds."),
    .storeUnavailable: FailureFacts(
      nil, .client, .no, "The data on this device cannot be used.",
      "Look at the store fault: make room, restore the key file, or update the app."),
    .undecryptable: FailureFacts(
      nil, .client, .no, "A message could not be read.", "Show a placeholder; the sender can send it again."),
    .mediaUnavailable: FailureFacts(
      nil, .client, .no, "Calls are not available in this app.",
      "Link PalbeCall and call PalbeCall.enable() at startup."),
    .noSiblingToTransfer: FailureFacts(
      409, .client, .no, "The user has no other device in this call.", "Hide the transfer button."),
    .callFull: FailureFacts(409, .server, .later, "The call is full.", "Try again when somebody has left."),
    .callEnded: FailureFacts(410, .server, .no, "The call is over.", "Take the call off the screen."),
    .unavailable: FailureFacts(
      503, .server, .yes, "The server is busy or under maintenance.", "Try again after a while."),
    .notConfigured: FailureFacts(
      nil, .client, .no, "The SDK is not configured.",
      "Add Palbase-Info.plist to the app, or on Linux name such a file in PALBE_CONFIG."),
    .unreachable: FailureFacts(
      nil, .client, .yes, "The server cannot be reached.", "Try again when there is a connection."),
    .unexpectedAnswer: FailureFacts(
      nil, .client, .no, "The server's answer makes no sense.",
      "Check that ServerURL in the configuration is a Palbe server, and no older than the SDK."),
    .requestTimeout: FailureFacts(
      408, .server, .yes, "The request took too long to arrive.", "Try again on a faster connection."),
    .invalidRequest: FailureFacts(
      400, .server, .no, "The server refuses the request.",
      "Check the arguments; report it with the request id when they are right."),
    .notFound: FailureFacts(
      404, .server, .no, "The server has no such route.", "Update the server: it is older than this SDK."),
    .methodNotAllowed: FailureFacts(
      405, .server, .no, "The server's route does not do that.",
      "Update the server: it is older than this SDK."),
    .unsupportedMediaType: FailureFacts(
      415, .server, .no, "The server's route takes bodies of another type.",
      "Update the server: it is older than this SDK."),
    .idempotencyMismatch: FailureFacts(
      422, .server, .no, "An idempotency key was used for another request.",
      "Report it with the request id; a new call has a new key."),
  ]

  /// What is said of `code`; for one that is not in the table, what its status says.
  static func facts(of code: FailureCode, status: Int?) -> FailureFacts {
    if let known = table[code] { return known }
    let mayPass = status.map { $0 == 408 || $0 == 429 || $0 >= 500 } ?? false
    return FailureFacts(
      status, .server, mayPass ? .yes : .no, "The server refused: \(code.rawValue).",
      mayPass ? "Try again after a while." : "Update the SDK: it does not know this code.")
  }
}
