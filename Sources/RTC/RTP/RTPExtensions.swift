import PalbeUnits
import PalbeWire

/// One header extension element: its local id and where its data lies in the packet.
public struct RTPExtensionElement: Hashable, Sendable {
  /// The id negotiated by `a=extmap`, 1 to 14 in the one-byte form, 1 to 255 in the two-byte form.
  public var id: UInt8
  /// The element's data, a range of the packet.
  public var range: Range<Int>

  @inlinable init(id: UInt8, range: Range<Int>) {
    self.id = id
    self.range = range
  }
}

/// Walks the extension elements of one packet (RFC 8285 §4.2 and §4.3).
///
/// A malformed tail ends the walk: RFC 8285 has a receiver ignore what it cannot read.
public struct RTPExtensionIterator: Sendable, BitwiseCopyable {
  @usableFromInline enum Form: UInt8, Sendable, BitwiseCopyable { case none, oneByte, twoByte }
  @usableFromInline let form: Form
  @usableFromInline var offset: Int
  @usableFromInline let end: Int

  /// Starts at the first element of the packet that `header` was parsed from.
  @inlinable public init(_ header: RTPHeader) {
    let range = header.extensionRange
    offset = range.lowerBound
    end = range.upperBound
    switch header.extensionProfile {
    case 0xbede: form = .oneByte
    case 0x1000...0x100f: form = .twoByte
    default: form = .none
    }
  }

  /// The next element of the same packet, nil at the end.
  @inlinable public mutating func next(in packet: Span<UInt8>) -> RTPExtensionElement? {
    guard end <= packet.count else { return nil }
    while offset < end {
      let first = packet[offset]
      if first == 0 {  // padding between elements
        offset += 1
        continue
      }
      let id: UInt8
      let start: Int
      let length: Int
      switch form {
      case .none: return nil
      case .oneByte:
        id = first >> 4
        // Id 15 stops the parsing (§4.2); id 0 with a length is padding that must not be read further.
        guard id != 15, id != 0 else { return stop() }
        start = offset + 1
        length = Int(first & 0x0f) + 1
      case .twoByte:
        guard offset + 1 < end else { return stop() }
        id = first
        start = offset + 2
        length = Int(packet[offset + 1])
      }
      guard length <= end - start else { return stop() }
      offset = start + length
      return RTPExtensionElement(id: id, range: start..<offset)
    }
    return nil
  }

  @usableFromInline mutating func stop() -> RTPExtensionElement? {
    offset = end
    return nil
  }
}

extension RTPHeader {
  /// Where the data of the extension with that id lies, nil when the packet has none.
  @inlinable public func extensionRange(id: UInt8, in packet: Span<UInt8>) -> Range<Int>? {
    var elements = RTPExtensionIterator(self)
    while let element = elements.next(in: packet) {
      if element.id == id { return element.range }
    }
    return nil
  }
}
