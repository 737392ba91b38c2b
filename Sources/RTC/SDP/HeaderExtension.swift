/// An RTP header extension and the id that stands for it in the packets (RFC 8285 §5).
public struct HeaderExtension: Equatable, Sendable {
  /// 1 to 14 fit the one-byte form, up to 255 the two-byte form; an answer uses the one that was offered.
  public var id: UInt8
  /// What it means; PalbeRTP's `RTPExtensionIDs` names those that are read and written.
  public var uri: String
  /// Narrower than the section's direction, where it is stated.
  public var direction: MediaDirection?

  /// An extension to offer.
  public init(id: UInt8, uri: String, direction: MediaDirection? = nil) {
    self.id = id
    self.uri = uri
    self.direction = direction
  }
}

extension MediaSection {
  /// The header extensions; lines that cannot be read, or whose id is not 1 to 255, are left out.
  public var headerExtensions: [HeaderExtension] {
    get { attributes.values("extmap").compactMap { HeaderExtension(parsing: $0) } }
    set {
      attributes.replace(
        "extmap",
        with: newValue.map { "\($0.id)" + ($0.direction.map { "/" + $0.rawValue } ?? "") + " " + $0.uri })
    }
  }

  /// The id of an extension in this section.
  public func headerExtensionID(_ uri: String) -> UInt8? { headerExtensions.first { $0.uri == uri }?.id }
}

extension HeaderExtension {
  /// `id[/direction] uri [attributes]`.
  init?(parsing value: String) {
    guard let (word, rest) = splitWord(value), let uri = rest.split(separator: " ").first else { return nil }
    let parts = word.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, let id: UInt8 = decimal(parts[0]), id > 0 else { return nil }
    var direction: MediaDirection?
    if parts.count == 2 {
      guard let stated = MediaDirection(rawValue: String(parts[1])) else { return nil }
      direction = stated
    }
    self.init(id: id, uri: String(uri), direction: direction)
  }
}
