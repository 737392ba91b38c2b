import PalbeCommandLine
import PalbeServerSettings
public import PalbeUnits
import PalbeYAML

/// A TURN server that clients are told of.
public struct TURNServerSetting: Equatable, Sendable {
  /// What a client asks for.
  public enum Transport: String, Sendable, CaseIterable { case udp, tcp, tls }

  public var host: String
  public var port: Int
  public var transport: Transport
  public var username = ""
  public var credential = ""
  /// The secret shared with coturn (`static-auth-secret`): each client gets a name and a password of its own, which expire.
  public var secret = ""
  /// How long such a password is valid.
  public var lifetime = TimeDelta.days(1)

  /// RFC 7065: "turn:turn.example.org:3478?transport=udp".
  public var url: String {
    let bracketed = host.contains(":") ? "[\(host)]" : host
    return "\(transport == .tls ? "turns" : "turn"):\(bracketed):\(port)"
      + "?transport=\(transport == .udp ? "udp" : "tcp")"
  }
}

extension SettingKind where Value == [APIKey] {
  /// API keys: a mapping of names to secrets, or `NAME:SECRET`.
  static var keys: SettingKind {
    let expectation = "a mapping of names to secrets"
    var kind = SettingKind(APIKey.placeholder, expectation) { node throws(SettingProblem) in
      var keys: [APIKey] = []
      for item in node.items {
        switch item.content {
        case .scalar(let text, _):
          do throws(ArgumentError) { keys.append(try APIKey(parsing: text, of: "")) } catch {
            throw SettingProblem("expected \(APIKey.placeholder)", at: item.position)
          }
        case .mapping(let entries):
          for entry in entries {
            guard let secret = entry.value.text, !secret.isEmpty, !entry.key.isEmpty else {
              throw SettingProblem("expected \(expectation)", at: entry.value.position)
            }
            keys.append(APIKey(name: entry.key, secret: secret))
          }
        case .sequence: throw SettingProblem("expected \(expectation)", at: item.position)
        }
      }
      var names: Set<String> = []
      for key in keys where !names.insert(key.name).inserted {
        throw SettingProblem("the key '\(key.name)' is there twice")
      }
      return keys
    } show: { keys, masks in
      let pairs = keys.sorted { $0.name < $1.name }.map {
        quoted($0.name) + ": " + (masks ? mask : quoted($0.secret))
      }
      return "{" + pairs.joined(separator: ", ") + "}"
    }
    kind.isRepeatable = true
    kind.node = { text throws(SettingProblem) in
      // LIVEKIT_KEYS has a space behind the colon, and may have many lines.
      let isMapping = text.firstIndex(of: ":").map { text[text.index(after: $0)...].hasPrefix(" ") } ?? false
      return isMapping ? try .structure(text) : .plain(text)
    }
    return kind
  }
}

extension SettingKind where Value == [TURNServerSetting] {
  /// LiveKit's `rtc.turn_servers`.
  static var turnServers: SettingKind {
    let names = ["host", "port", "protocol", "username", "credential", "secret", "ttl"]
    var kind = SettingKind("{host: …}", "a list of mappings of \(names.joined(separator: ", "))") {
      node throws(SettingProblem) in
      var servers: [TURNServerSetting] = []
      for item in node.items { servers.append(try server(item, names)) }
      return servers
    } show: { servers, masks in
      "[" + servers.map { shown($0, masks) }.joined(separator: ", ") + "]"
    }
    kind.isRepeatable = true
    kind.node = { text throws(SettingProblem) in try .structure(text) }
    return kind
  }

  private static func server(_ node: YAMLNode, _ names: [String]) throws(SettingProblem) -> TURNServerSetting
  {
    let fields = try node.fields(names)
    func text(_ name: String) throws(SettingProblem) -> String? {
      guard let field = fields[name] else { return nil }
      guard let text = field.text else { throw SettingProblem("expected text", at: field.position) }
      return text.isEmpty ? nil : text
    }
    guard let host = try text("host"), HostName.isValid(host) else {
      throw SettingProblem(
        "expected a host name or an address as 'host'", at: fields["host"]?.position ?? node.position)
    }
    guard let transport = TURNServerSetting.Transport(rawValue: try text("protocol") ?? "udp") else {
      throw SettingProblem("expected udp, tcp or tls", at: fields["protocol"]?.position)
    }
    let portText = try text("port") ?? (transport == .tls ? "5349" : "3478")
    guard let port = Int(portText), (1...65_535).contains(port) else {
      throw SettingProblem("expected a port", at: fields["port"]?.position)
    }
    var server = TURNServerSetting(host: host, port: port, transport: transport)
    server.username = try text("username") ?? ""
    server.credential = try text("credential") ?? ""
    server.secret = try text("secret") ?? ""
    guard server.secret.isEmpty != (server.username.isEmpty || server.credential.isEmpty) else {
      throw SettingProblem("expected either 'secret', or both 'username' and 'credential'", at: node.position)
    }
    if let ttl = fields["ttl"] {
      server.lifetime = try SettingKind<TimeDelta>.duration(.seconds(60)...TimeDelta.days(30))
        .read(ttl)
    }
    return server
  }

  private static func shown(_ server: TURNServerSetting, _ masks: Bool) -> String {
    var text = "{host: \(quoted(server.host)), port: \(server.port), protocol: \(server.transport.rawValue)"
    if !server.secret.isEmpty {
      text +=
        ", secret: \(masks ? mask : quoted(server.secret)), ttl: \(server.lifetime.wholeMilliseconds / 1_000)s"
    } else {
      text +=
        ", username: \(quoted(server.username)), credential: \(masks ? mask : quoted(server.credential))"
    }
    return text + "}"
  }
}

extension SettingKind where Value == [String] {
  /// LiveKit's `room.enabled_codecs`: a list of mappings of `mime` and `fmtp_line`, or of MIME types. The second says nothing
  /// here, and codecs that are not forwarded are passed over.
  static var codecs: SettingKind {
    let forwarded = ["audio/opus", "audio/red", "video/vp8", "video/h264", "video/vp9", "video/av1"]
    var kind = list("MIME", "a list of \(forwarded.joined(separator: ", "))")
    kind.read = { node throws(SettingProblem) in
      var codecs: [String] = []
      for item in node.items {
        let text: String?
        if case .mapping = item.content {
          text = try item.fields(["mime", "fmtp_line"])["mime"]?.text
        } else {
          text = item.text
        }
        guard let mime = text?.lowercased(), mime.hasPrefix("audio/") || mime.hasPrefix("video/") else {
          throw SettingProblem("expected a MIME type such as video/vp8", at: item.position)
        }
        if forwarded.contains(mime), !codecs.contains(mime) { codecs.append(mime) }
      }
      guard node.items.isEmpty || !codecs.isEmpty else {
        throw SettingProblem("expected one of \(forwarded.joined(separator: ", "))", at: node.position)
      }
      return codecs
    }
    return kind
  }

  /// LiveKit's `stun_servers`: host and port.
  static var stunServers: SettingKind {
    .list("HOST:PORT", "a list of HOST:PORT") { text in
      guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]) else {
        return HostName.isValid(text)
      }
      return (1...65_535).contains(port) && HostName.isValid(String(text[..<colon]))
    }
  }
}

extension SettingKind where Value == TimeDelta {
  /// LiveKit's `pli_throttle`: a time for each quality, of which the lowest counts here; or one time.
  static var keyFrameInterval: SettingKind {
    let time = SettingKind.duration(.milliseconds(50)...TimeDelta.seconds(30))
    var kind = time
    kind.read = { node throws(SettingProblem) in
      guard case .mapping = node.content else { return try time.read(node) }
      let fields = try node.fields(["low_quality", "mid_quality", "high_quality"])
      var times: [TimeDelta] = []
      for field in fields.values { times.append(try time.read(field)) }
      guard let least = times.min() else {
        throw SettingProblem("expected \(time.expectation)", at: node.position)
      }
      return least
    }
    return kind
  }
}

/// What a host may be called in a URL.
enum HostName {
  static func isValid(_ text: String) -> Bool {
    if SocketAddress(host: text, port: 0) != nil { return true }
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    return text.utf8.count <= 253
      && labels.allSatisfy { label in
        (1...63).contains(label.utf8.count) && label.first != "-"
          && label.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
              UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
              true
            default: false
            }
          }
      }
  }
}
