import PalbeWire

/// A frame of ours, without the id that it gets when it is sent.
package struct RealtimeFrame: Sendable, Equatable {
  /// A value of a member.
  package enum Value: Sendable, Equatable {
    case text(String)
    case integer(Int64)
    case flag(Bool)
    case integers([Int64])
  }

  package var type: String
  package var members: [(name: String, value: Value)]

  package init(_ type: String, _ members: [(name: String, value: Value)] = []) {
    self.type = type
    self.members = members
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.type == right.type && left.members.elementsEqual(right.members, by: ==)
  }

  /// Says whether this device's user writes in a group; it lapses after 6 s.
  package static func typing(group: String, isOn: Bool) -> RealtimeFrame {
    RealtimeFrame("typing", [("group", .text(group)), ("on", .flag(isOn))])
  }
  /// Rows up to that one are stored here.
  package static func acknowledge(upTo row: Int64) -> RealtimeFrame {
    RealtimeFrame("ack", [("up_to", .integer(row))])
  }
  /// These rows are stored here.
  package static func acknowledge(_ rows: [Int64]) -> RealtimeFrame {
    RealtimeFrame("ack", [("ids", .integers(rows))])
  }
  /// The next rows of the device's queue.
  package static func fetch(after row: Int64, limit: Int) -> RealtimeFrame {
    RealtimeFrame("fetch", [("after", .integer(row)), ("limit", .integer(Int64(limit)))])
  }

  func text(id: Int64?) -> String {
    var json = JSONWriter()
    json.beginObject()
    json.key("type")
    json.string(type)
    if let id {
      json.key("id")
      json.integer(id)
    }
    for member in members {
      json.key(member.name)
      switch member.value {
      case .text(let text): json.string(text)
      case .integer(let number): json.integer(number)
      case .flag(let flag): json.bool(flag)
      case .integers(let numbers):
        json.beginArray()
        for number in numbers { json.integer(number) }
        json.endArray()
      }
    }
    json.endObject()
    return json.text
  }
}

/// A frame of the server's, as far as this layer reads it.
struct ReceivedFrame: Equatable {
  enum Content: Equatable {
    case reply(id: Int64)
    case error(id: Int64?, ServerFailure)
    case event(topic: String, name: String)
    case ended(topic: String, reason: String)
    case heartbeat
  }
  var content: Content
  var bytes: [UInt8]

  /// As long as an answer over HTTP: a reply may hold a page of the queue.
  static let limit = 8 << 20

  /// Nil for what is none: other types, missing members, anything but JSON.
  init?(_ text: String) {
    bytes = Array(text.utf8)
    var members: [String: String] = [:]
    var id: Int64?
    var error: [UInt8] = []
    do throws(JSONError) {
      var json = try JSONReader(bytes, limit: Self.limit, depth: 32)
      try json.enterObject()
      while let key = try json.nextKey() {
        switch key {
        case "type", "topic", "event", "reason": members[key] = try json.string()
        case "id": id = try json.integer()
        case "error":
          let start = json.offset
          try json.skipValue()
          error = Array(bytes[start..<json.offset])
        default: try json.skipValue()
        }
      }
      try json.finish()
    } catch {
      return nil
    }
    switch (members["type"], members["topic"]) {
    case ("reply", _):
      guard let id else { return nil }
      content = .reply(id: id)
    case ("error", _):
      // What a body says its status is counts here: there is no status line.
      content = .error(id: id, ServerFailure(status: Self.status(of: error), headers: [:], body: error))
    case ("event", let topic?):
      guard let name = members["event"] else { return nil }
      content = .event(topic: topic, name: name)
    case ("subscription_ended", let topic?): content = .ended(topic: topic, reason: members["reason"] ?? "")
    case ("heartbeat", _): content = .heartbeat
    default: return nil
    }
  }

  private static func status(of error: [UInt8]) -> Int {
    guard var json = try? JSONReader(error, limit: limit, depth: 32), (try? json.enterObject()) != nil else {
      return 500
    }
    while let key = try? json.nextKey() {
      if key == "status" {
        guard let status: Int = try? json.integer(), (400...599).contains(status) else { return 500 }
        return status
      }
      guard (try? json.skipValue()) != nil else { return 500 }
    }
    return 500
  }
}
