import Foundation
import PalbeLiveKit
import PalbeProtobuf
import PalbeWebServer
import PalbeWire

/// The older way to say how one joins: query items on `/rtc`, whose session has two connections.
struct QueryJoin {
  private let request: HTTPRequest

  /// Nil on another path.
  init?(_ request: HTTPRequest) {
    guard request.path == "/rtc" || request.path == "/rtc/validate" else { return nil }
    self.request = request
  }

  func joinRequest() throws(JoinRefusal) -> LiveKit.JoinRequest {
    let attributes = try attributes()
    return .with {
      $0.clientInfo = clientInfo
      $0.connectionSettings = .with {
        // What is absent is wanted, unlike in a join_request.
        $0.autoSubscribe = flag("auto_subscribe", default: true)
        $0.adaptiveStream = flag("adaptive_stream", default: false)
        $0.subscriberAllowPause = flag("subscriber_allow_pause", default: false)
        $0.autoSubscribeDataTrack = flag("auto_subscribe_data_track", default: false)
        $0.disableIceLite = flag("disable_ice_lite", default: false)
      }
      $0.participantAttributes = attributes
      $0.reconnect = flag("reconnect", default: false)
      $0.reconnectReason = LiveKit.ReconnectReason(rawValue: number("reconnect_reason"))
      $0.participantSid = text("sid")
    }
  }

  private var clientInfo: LiveKit.ClientInfo {
    .with {
      $0.sdk = LiveKit.ClientInfo.SDK(queryName: text("sdk"))
      $0.version = text("version")
      $0.protocol = number("protocol")
      $0.clientProtocol = number("client_protocol")
      $0.os = text("os")
      $0.osVersion = text("os_version")
      $0.deviceModel = text("device_model")
      $0.browser = text("browser")
      $0.browserVersion = text("browser_version")
      $0.network = text("network")
      $0.capabilities = capabilities
    }
  }

  /// Names between commas; those that are not known are left out.
  private var capabilities: [LiveKit.ClientInfo.Capability] {
    text("capabilities").split(separator: ",").compactMap { LiveKit.ClientInfo.Capability(name: $0) }
  }

  /// base64url of a JSON object of strings.
  private func attributes() throws(JoinRefusal) -> [String: String] {
    guard let item = request.query("attributes"), !item.isEmpty else { return [:] }
    guard let bytes = Base64.decode(item, alphabet: .url),
      let values = try? JSONDecoder().decode([String: String].self, from: Data(bytes))
    else { throw .badRequest("attributes is not base64url of a JSON object of strings") }
    return values
  }

  /// At most 256 bytes; nothing of it is trusted.
  private func text(_ name: String) -> String {
    String(decoding: (request.query(name) ?? "").utf8.prefix(256), as: UTF8.self)
  }

  private func number(_ name: String) -> Int32 { request.query(name).flatMap(Int32.init) ?? 0 }

  private func flag(_ name: String, default absent: Bool) -> Bool {
    switch request.query(name) {
    case nil, "": absent
    case "1", "true": true
    default: false
    }
  }
}

extension LiveKit.ClientInfo.SDK {
  /// By the name in a query.
  init(queryName: String) {
    self =
      switch queryName {
      case "js": .js
      case "swift", "ios": .swift
      case "android": .android
      case "flutter": .flutter
      case "go": .go
      case "unity": .unity
      case "reactnative": .reactNative
      case "rust": .rust
      case "python": .python
      case "cpp": .cpp
      case "unityweb": .unityWeb
      case "node": .node
      case "esp32": .esp32
      default: .unknown
      }
  }
}
