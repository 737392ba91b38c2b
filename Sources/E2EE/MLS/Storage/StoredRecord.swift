import PalbeCrypto
import PalbeMLSMessages
import PalbeWire

/// What a record holds. Its bytes begin with the number of the schema that wrote them.
protocol StoredRecord: Sendable {
  /// Reads what a record of `schema` holds, 1 to `RecordSchema.current`, without that number.
  init(from reader: inout ByteReader, schema: Int) throws(WireError)
  /// Appends what it holds in the current schema.
  func encode(into writer: inout RecordWriter)
}

/// The schemas of stored records.
///
/// 1. The first.
/// 2. A key that was passed over has the time when.
/// 3. What was processed is remembered, in pages, instead of the last commit of our own; resumption keys of other groups;
///    a client with a new signing key; committed proposals of the application's own.
enum RecordSchema {
  static let current = 4
}

extension StoredRecord {
  /// The record's bytes.
  var record: MLSRecord {
    var writer = RecordWriter()
    encode(into: &writer)
    return writer.finish()
  }

  /// Decodes all of a record. Throws `newerSchema`, `corrupted`.
  init(_ record: MLSRecord) throws(MLSStorageError) {
    let schema: Int
    do throws(WireError) {
      var reader = ByteReader(record.bytes.span)
      schema = Int(try reader.uint16())
      guard schema > 0 else { throw .invalid(field: "record schema", value: 0) }
    } catch { throw .corrupted(error) }
    guard schema <= RecordSchema.current else {
      throw .newerSchema(found: schema, known: RecordSchema.current)
    }
    do throws(WireError) {
      var reader = ByteReader(record.bytes.span)
      try reader.skip(2)
      self = try Self(from: &reader, schema: schema)
      try reader.finish()
    } catch { throw .corrupted(error) }
  }
}

/// Collects a record's fields; secrets are copied once, into the record itself.
struct RecordWriter {
  private enum Piece {
    case plain([UInt8])
    case secret(Secret)
  }

  private var pieces: [Piece] = []
  /// For fields that are not secret.
  var plain = ByteWriter(capacity: 128)

  init() { plain.uint16(UInt16(RecordSchema.current)) }

  mutating func value(_ value: some MLSCodable) { value.encode(into: &plain) }

  mutating func flag(_ value: Bool) { plain.flag(value) }

  /// `opaque secret<V>`.
  mutating func secret(_ secret: Secret) {
    plain.vectorLength(secret.byteCount)
    pieces.append(.plain(plain.bytes))
    pieces.append(.secret(secret))
    plain.bytes.removeAll(keepingCapacity: true)
  }

  mutating func optional(_ secret: Secret?) {
    flag(secret != nil)
    if let secret { self.secret(secret) }
  }

  consuming func finish() -> MLSRecord {
    pieces.append(.plain(plain.bytes))
    var count = 0
    for piece in pieces {
      switch piece {
      case .plain(let bytes): count += bytes.count
      case .secret(let secret): count += secret.byteCount
      }
    }
    return MLSRecord(
      SymmetricKey(byteCount: count) { output in
        for piece in pieces {
          switch piece {
          case .plain(let bytes): output.append(contentsOf: bytes.span)
          case .secret(let secret): output.append(contentsOf: secret.span)
          }
        }
      })
  }
}

extension ByteReader {
  @_lifetime(self: copy self)
  mutating func secret() throws(WireError) -> Secret {
    let count = try vectorLength()
    return Secret(SymmetricKey(copying: try span(count)))
  }

  @_lifetime(self: copy self)
  mutating func optionalSecret() throws(WireError) -> Secret? { try flag() ? try secret() : nil }

  @_lifetime(self: copy self)
  mutating func epochID() throws(WireError) -> EpochID {
    EpochID(number: try uint64(), branch: try uint64())
  }
}
