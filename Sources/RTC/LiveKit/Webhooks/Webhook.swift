import PalbeCrypto
import PalbeProtobuf
import PalbeWire

extension LiveKit {
  /// One event on its way to an operator's server (livekit-protocol.md §2, "Webhooks"): a POST of `body`, with a
  /// token that binds it.
  ///
  ///     let webhook = LiveKit.Webhook(event)
  ///     let claims = webhook.claims(issuer: apiKey, at: unixSeconds)
  ///     // POST webhook.body, Content-Type: Webhook.contentType, Authorization: <the claims, signed with HS256>
  public struct Webhook: Equatable, Sendable {
    /// What happened, in `WebhookEvent.event`. Of the reference's names those that this server has.
    public enum Event: String, CaseIterable, Sendable {
      case roomStarted = "room_started"
      case roomFinished = "room_finished"
      case participantJoined = "participant_joined"
      case participantLeft = "participant_left"
      /// Joined, and gone before there was a connection.
      case participantConnectionAborted = "participant_connection_aborted"
      case trackPublished = "track_published"
      case trackUnpublished = "track_unpublished"
    }

    /// The `Content-Type` of the request.
    public static let contentType = "application/webhook+json"
    /// The `User-Agent` of the request.
    public static let userAgent = "LiveKit"
    /// How long a token is good, in seconds.
    public static let tokenLifetime: Int64 = 300

    /// JSON in UTF-8. Every retry sends these same bytes.
    public let body: [UInt8]

    /// Writes the body.
    public init(_ event: WebhookEvent) { body = Array(event.json().utf8) }

    /// A body that was written before.
    public init(body: [UInt8]) { self.body = body }

    /// The `sha256` claim: standard base64 of the body's SHA-256.
    public var bodyHash: String { Self.hash(body) }

    /// The claims of the token in `Authorization`, which carries no `Bearer` before it. To be signed with HS256.
    ///
    /// - Parameters:
    ///   - issuer: the API key whose secret signs.
    ///   - now: Unix seconds; a retry takes a new token.
    public func claims(issuer: String, at now: Int64) -> String {
      var writer = JSONWriter()
      writer.beginObject()
      writer.key("iss")
      writer.string(issuer)
      writer.key("nbf")
      writer.integer(now)
      writer.key("exp")
      writer.integer(now + Self.tokenLifetime)
      writer.key("sha256")
      writer.string(bodyHash)
      writer.endObject()
      return writer.text
    }

    /// Whether a received body is the one that a `sha256` claim speaks of. The token's signature is checked
    /// elsewhere.
    public static func matches(body: [UInt8], claim: String) -> Bool { hash(body) == claim }

    private static func hash(_ body: [UInt8]) -> String { Base64.encode(SHA256.hash(body)) }
  }
}

extension LiveKit.WebhookEvent {
  /// An event of this kind.
  ///
  /// - Parameters:
  ///   - id: of this event; a receiver drops a second one.
  ///   - createdAt: Unix seconds.
  public init(_ event: LiveKit.Webhook.Event, id: String, createdAt: Int64) {
    self.init()
    self.event = event.rawValue
    self.id = id
    self.createdAt = createdAt
  }
}
