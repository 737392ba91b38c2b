/// A stream of a section by its id (RFC 8851): `a=rid:id send [restrictions]`.
public struct RestrictionID: Equatable, Sendable {
  /// Letters, digits, `-` and `_`; LiveKit's clients use q, h and f.
  public var id: String
  /// True for `send`, seen from the side that wrote the description.
  public var isSent: Bool
  /// What follows, as it stands.
  public var restrictions: String

  /// A stream to announce.
  public init(id: String, isSent: Bool, restrictions: String = "") {
    self.id = id
    self.isSent = isSent
    self.restrictions = restrictions
  }
}

/// Which streams of a section are layers of one picture (RFC 8853): `a=simulcast:send h;q recv x`.
public struct Simulcast: Equatable, Sendable {
  /// The ids this side sends, in order; of alternatives the first, and without the mark of a paused one.
  public var send: [String]
  /// The ids this side receives, likewise.
  public var receive: [String]

  /// Layers to announce.
  public init(send: [String] = [], receive: [String] = []) {
    self.send = send
    self.receive = receive
  }
}

extension MediaSection {
  /// The streams by their ids; lines that cannot be read are left out.
  public var rids: [RestrictionID] {
    get { attributes.values("rid").compactMap { RestrictionID(parsing: $0) } }
    set {
      attributes.replace(
        "rid",
        with: newValue.map {
          "\($0.id) \($0.isSent ? "send" : "recv")" + ($0.restrictions.isEmpty ? "" : " " + $0.restrictions)
        })
    }
  }

  /// The layers, or nil.
  public var simulcast: Simulcast? {
    get { attributes.first("simulcast").flatMap { Simulcast(parsing: $0) } }
    set {
      guard let newValue, !newValue.send.isEmpty || !newValue.receive.isEmpty else {
        attributes.set("simulcast", nil)
        return
      }
      let parts =
        (newValue.send.isEmpty ? [] : ["send " + newValue.send.joined(separator: ";")])
        + (newValue.receive.isEmpty ? [] : ["recv " + newValue.receive.joined(separator: ";")])
      attributes.set("simulcast", parts.joined(separator: " "))
    }
  }
}

extension RestrictionID {
  init?(parsing value: String) {
    let words = value.split(separator: " ", maxSplits: 2)
    guard words.count >= 2, words[1] == "send" || words[1] == "recv" else { return nil }
    guard words[0].utf8.count <= 255,
      words[0].utf8.allSatisfy({ isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") })
    else { return nil }
    self.init(
      id: String(words[0]), isSent: words[1] == "send", restrictions: words.count == 3 ? String(words[2]) : ""
    )
  }
}

extension Simulcast {
  /// `send list [recv list]` in either order.
  init?(parsing value: String) {
    let words = value.split(separator: " ")
    guard words.count == 2 || words.count == 4 else { return nil }
    self.init()
    for index in stride(from: 0, to: words.count, by: 2) {
      let ids = words[index + 1].split(separator: ";").compactMap { stream -> String? in
        guard let first = stream.split(separator: ",").first else { return nil }
        let id = first.drop { $0 == "~" }
        return id.isEmpty ? nil : String(id)
      }
      switch words[index] {
      case "send" where send.isEmpty: send = ids
      case "recv" where receive.isEmpty: receive = ids
      default: return nil
      }
    }
  }
}
