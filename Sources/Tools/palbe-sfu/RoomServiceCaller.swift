import Foundation
import FoundationNetworking
import PalbeCommandLine
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUServer
import PalbeSFUSettings
import PalbeServerSettings
import PalbeWire
import Synchronization

/// Calls a server's RoomService, in protobuf over HTTP or HTTPS.
struct RoomServiceCaller {
  private static let timeout: TimeInterval = 10

  private let url: URL
  private let key: APIKey
  private let printsJSON: Bool

  /// From options, variables and the configuration; ends the program where something is missing.
  init(_ arguments: ParsedArguments) {
    let settings = Settings.load(arguments)
    let environment = SettingsFiles.environment()
    printsJSON = arguments.has("--json")
    func variable(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    let text =
      arguments.string("--url") ?? variable("PALBE_SFU_URL", "LIVEKIT_URL") ?? Self.localURL(settings)
    // A client's address of the same server.
    let web = text.hasPrefix("ws") ? "http" + text.dropFirst(2) : text
    guard let url = URL(string: web), url.scheme == "http" || url.scheme == "https", url.host != nil else {
      fail("'--url' is '\(text)'; expected http://HOST:PORT or https://HOST:PORT")
    }
    self.url = url
    if let key = settings.apiKeys.first {
      self.key = key
    } else if let name = variable("PALBE_SFU_API_KEY", "LIVEKIT_API_KEY"),
      let secret = variable("PALBE_SFU_API_SECRET", "LIVEKIT_API_SECRET")
    {
      key = APIKey(name: name, secret: secret)
    } else {
      fail("no API key: give --key NAME:SECRET, --config FILE, or LIVEKIT_API_KEY and LIVEKIT_API_SECRET")
    }
  }

  /// Where a server with this configuration listens, seen from its own machine.
  private static func localURL(_ settings: Settings) -> String {
    let scheme = settings[SFUKeys.certificateFile] == nil ? "http" : "https"
    let address = settings[SFUKeys.bindAddresses].first { !$0.isEmpty } ?? "127.0.0.1"
    let host = address == "0.0.0.0" || address == "::" ? "127.0.0.1" : address
    return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(settings[SFUKeys.port])"
  }

  /// Makes the call, or ends the program with what the server says.
  func call<Answer: ProtobufMessage>(
    _ method: LiveKit.RoomServiceMethod, _ request: some ProtobufMessage, room: String = ""
  ) -> Answer {
    guard
      let token = OperatorToken.token(
        for: method, room: room, keyName: key.name, secret: key.secret, now: WallClock.unixSeconds)
    else { fail("the room's name cannot be put into a token") }
    var post = URLRequest(url: url.appendingPathComponent(String(method.path.dropFirst())))
    post.httpMethod = "POST"
    post.timeoutInterval = Self.timeout
    post.setValue(LiveKit.TwirpEncoding.protobuf.contentType, forHTTPHeaderField: "Content-Type")
    post.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    post.httpBody = Data(request.serialized())
    let (status, body) = send(post)
    guard status == 200 else { refuse(status, body) }
    do throws(ProtobufError) { return try Answer(serialized: body) } catch {
      stop("the server's answer is none of a RoomService")
    }
  }

  private func send(_ request: URLRequest) -> (status: Int, body: [UInt8]) {
    let answer = Mutex<(Int, [UInt8], String?)>((0, [], nil))
    let done = DispatchSemaphore(value: 0)
    let session = URLSession(configuration: .ephemeral)
    let task = session.dataTask(with: request) { data, response, error in
      answer.withLock {
        $0 = (
          (response as? HTTPURLResponse)?.statusCode ?? 0, data.map { [UInt8]($0) } ?? [],
          error?.localizedDescription
        )
      }
      done.signal()
    }
    task.resume()
    done.wait()
    let (status, body, failure) = answer.withLock { $0 }
    if let failure {
      // A configuration's own address has no name, and a certificate has.
      let hint =
        url.scheme == "https" ? "; give the certificate's name: --url https://NAME:\(url.port ?? 443)" : ""
      stop("cannot reach \(url.absoluteString): \(failure)\(hint)")
    }
    return (status, body)
  }

  private func refuse(_ status: Int, _ body: [UInt8]) -> Never {
    if let error = try? LiveKit.TwirpError(json: String(decoding: body, as: UTF8.self)) {
      stop("\(error.message) (\(error.code.rawValue))")
    }
    stop("the server answered with status \(status)")
  }

  private func stop(_ reason: String) -> Never { fail(reason, code: 1) }

  /// Prints the answer, or `text` for a person; nothing for what has no more to tell.
  func show(_ answer: some ProtobufMessage, _ text: String?) {
    if printsJSON {
      put(answer.json(.twirp), to: STDOUT_FILENO)
    } else if let text {
      put(text, to: STDOUT_FILENO)
    }
  }
}
