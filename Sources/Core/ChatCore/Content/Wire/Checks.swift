import PalbeProtobuf
import PalbeUnits
import PalbeWire

// What every field's value is held against, by who writes and by who reads.

extension StaticField {
  /// A limit holds for `count`.
  func limit(_ count: Int, to limit: Int) throws(ContentError) {
    guard count <= limit else { throw .limit(field: self, limit: limit) }
  }

  /// The text, no longer than `limit` bytes of UTF-8.
  func text(_ text: String, to limit: Int) throws(ContentError) -> String {
    try self.limit(text.utf8.count, to: limit)
    return text
  }

  /// The text if there is one, no longer than `limit` bytes of UTF-8.
  func text(_ text: String?, to limit: Int) throws(ContentError) -> String? {
    if let text { try self.limit(text.utf8.count, to: limit) }
    return text
  }

  /// The id in 16 bytes.
  func id<Kind>(_ bytes: [UInt8]) throws(ContentError) -> Identifier<Kind> {
    if bytes.isEmpty { throw .missing(self) }
    guard let id = Identifier<Kind>(bytes: bytes) else { throw .invalid(self) }
    return id
  }
}

/// The numbers of the fields of `alternatives` in a message's unknown fields: the first two that differ, for the second is
/// one too many already.
func unknownAlternatives(
  _ alternatives: ClosedRange<UInt32>, in fields: [UInt8]
) throws(ContentError) -> [UInt32] {
  var reader = ProtobufReader(fields.span)
  var numbers: [UInt32] = []
  do throws(ProtobufError) {
    while numbers.count < 2, let tag = try reader.tag() {
      if alternatives.contains(tag.field), numbers.last != tag.field { numbers.append(tag.field) }
      try reader.skip(tag.wire)
    }
  } catch { throw .malformed(error) }
  return numbers
}
