/// What `palbe-call join` was asked to do.
public struct JoinOptions: Sendable {
  /// The SFU's `ws://` or `wss://` address.
  public var url: String
  /// The access token.
  public var token: String
  /// The 32-byte call key; nil for a call without end-to-end encryption.
  public var key: [UInt8]?
  /// LiveKit's frame format instead of ours, for calls with LiveKit's clients; `key` is nil then.
  public var liveKit: LiveKitPassphrase?
  /// A WAV file to send; the voice-like test signal without one.
  public var audioPath: String?
  /// A Y4M file to send; the moving test card without one.
  public var videoPath: String?
  /// Sends nothing.
  public var listens = false
  /// The folder for one WAV and one Y4M file a participant; nil records nothing.
  public var recordPath: String?
  /// Leaves after so many seconds; nil stays until the call ends or is interrupted.
  public var seconds: Int?

  /// Joins with the test signals and stays.
  public init(url: String, token: String, key: [UInt8]?) {
    self.url = url
    self.token = token
    self.key = key
  }
}
