import PalbeMLS
import PalbeUnits
import PalbeWire

/// What a record of a transcript holds. Its bytes begin with the number of the schema that wrote them.
protocol ChatRecord: Equatable, Sendable {
  /// Reads what a record holds, without that number.
  init(from reader: inout ByteReader) throws(WireError)
  /// Appends what it holds.
  func encode(into writer: inout ByteWriter)
}

/// The schema of a transcript's records: 1 is the first. A field that is added raises it and gives
/// `init(from:)` a default for older ones.
enum ChatSchema {
  static let current: UInt8 = 1
}

extension ChatRecord {
  /// The record's bytes.
  var record: MLSRecord {
    var writer = ByteWriter(capacity: 256)
    writer.uint8(ChatSchema.current)
    encode(into: &writer)
    return MLSRecord(copying: writer.bytes.span)
  }

  /// Decodes all of a record. Throws `newerSchema`, `corrupted`.
  init(_ record: MLSRecord) throws(MLSStorageError) {
    self = try record.withSpan { (bytes) throws(MLSStorageError) in try Self(decoding: bytes) }
  }

  /// Decodes all of a record. Throws `newerSchema`, `corrupted`.
  init(decoding bytes: Span<UInt8>) throws(MLSStorageError) {
    var reader = ByteReader(bytes)
    let schema: UInt8
    do throws(WireError) {
      schema = try reader.uint8()
      guard schema > 0 else { throw .invalid(field: "record schema", value: 0) }
    } catch { throw .corrupted(error) }
    guard schema <= ChatSchema.current else {
      throw .newerSchema(found: Int(schema), known: Int(ChatSchema.current))
    }
    do throws(WireError) {
      self = try Self(from: &reader)
      try reader.finish()
    } catch { throw .corrupted(error) }
  }
}

/// A record that says all it has to say by being there.
struct MarkRecord: ChatRecord {
  init() {}
  init(from reader: inout ByteReader) throws(WireError) {}
  func encode(into writer: inout ByteWriter) {}
}

extension MLSTransaction {
  /// Writes what a record holds.
  mutating func put(_ value: some ChatRecord, _ key: MLSRecordKey) { write(value.record, key) }
}

extension MLSStorage {
  /// What a record holds; nil where there is none. Throws `newerSchema`, `corrupted`.
  func read<Record: ChatRecord>(
    _ key: MLSRecordKey, as type: Record.Type
  ) throws(MLSStorageError) -> Record? {
    guard let record = try read(key) else { return nil }
    return try Record(record)
  }

  /// What a record will hold once `transaction` is carried out.
  func read<Record: ChatRecord>(
    _ key: MLSRecordKey, as type: Record.Type, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> Record? {
    guard let record = try read(key, after: transaction) else { return nil }
    return try Record(record)
  }

  /// The record as it will be once `transaction` is carried out.
  func read(_ key: MLSRecordKey, after transaction: borrowing MLSTransaction) throws(MLSStorageError)
    -> MLSRecord?
  {
    switch transaction.changes[key] {
    case .write(let record): return record
    case .erase: return nil
    case nil: break
    }
    for prefix in transaction.erasedPrefixes where key.isUnder(prefix) { return nil }
    return try read(key)
  }

  /// The keys under a prefix as they will be once `transaction` is carried out, ascending.
  func keys(
    under prefix: MLSRecordKey, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> [MLSRecordKey] {
    var keys = try keys(under: prefix)
    if !transaction.erasedPrefixes.isEmpty {
      keys.removeAll { key in transaction.erasedPrefixes.contains { key.isUnder($0) } }
    }
    var gone: Set<MLSRecordKey> = []
    var new: [MLSRecordKey] = []
    for (key, change) in transaction.changes where key.isUnder(prefix) {
      if case .write = change { new.append(key) } else { gone.insert(key) }
    }
    if !gone.isEmpty { keys.removeAll { gone.contains($0) } }
    guard !new.isEmpty else { return keys }
    return Set(keys).union(new).sorted()
  }
}

// MARK: Fields

extension ByteWriter {
  /// UTF-8 behind its count of bytes.
  mutating func text(_ text: String) {
    uint32(UInt32(text.utf8.count))
    append(utf8: text)
  }

  /// At most 65,535.
  mutating func users(_ users: [UserID]) {
    uint16(UInt16(clamping: users.count))
    for user in users.prefix(Int(UInt16.max)) { id(user) }
  }

  mutating func device(_ device: DeviceName) {
    id(device.user)
    id(device.device)
  }

  mutating func expiry(_ expiry: Expiry) {
    uint32(expiry.seconds)
    uint8(expiry.start.rawValue)
  }

  mutating func optional<Value>(_ value: Value?, _ write: (inout ByteWriter, Value) -> Void) {
    flag(value != nil)
    if let value { write(&self, value) }
  }
}

extension ByteReader {
  /// A count of something that was counted, never below zero.
  @_lifetime(self: copy self)
  mutating func count() throws(WireError) -> Int {
    let value = try uint64()
    guard let count = Int(exactly: value), count <= 1 << 48 else {
      throw .invalid(field: "count", value: value)
    }
    return count
  }

  @_lifetime(self: copy self)
  mutating func text() throws(WireError) -> String {
    let bytes = try counted()
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .invalid(field: "text", value: UInt64(bytes.count))
    }
    return text
  }

  @_lifetime(self: copy self)
  mutating func users() throws(WireError) -> [UserID] {
    let count = Int(try uint16())
    guard remaining >= count * 16 else { throw .truncated(needed: count * 16, have: remaining) }
    var users: [UserID] = []
    users.reserveCapacity(count)
    for _ in 0..<count { users.append(try id()) }
    return users
  }

  @_lifetime(self: copy self)
  mutating func device() throws(WireError) -> DeviceName { DeviceName(user: try id(), device: try id()) }

  @_lifetime(self: copy self)
  mutating func expiry() throws(WireError) -> Expiry {
    Expiry(seconds: try uint32(), start: try choice("expiry start"))
  }

  @_lifetime(self: copy self)
  mutating func position() throws(WireError) -> TranscriptPosition {
    TranscriptPosition(rawValue: try uint64())
  }
}
