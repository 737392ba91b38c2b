import PalbeMLSMessages
import PalbeWire

/// A request's parameters; each read names the parameter that is missing or wrong.
struct Parameters {
  let values: JSON

  func has(_ name: String) -> Bool { values[name] != nil }

  func value(_ name: String) throws(InteropError) -> JSON {
    guard let value = values[name] else { throw InteropError("badParameter", "missing parameter: \(name)") }
    return value
  }

  func text(_ name: String) throws(InteropError) -> String {
    guard let text = try value(name).text else {
      throw InteropError("badParameter", "\(name) is not a string")
    }
    return text
  }

  func integer(_ name: String, in range: ClosedRange<Int64>) throws(InteropError) -> Int64 {
    guard let number = try value(name).number, range.contains(number) else {
      throw InteropError("badParameter", "\(name) is not an integer from \(range)")
    }
    return number
  }

  func flag(_ name: String, default fallback: Bool) throws(InteropError) -> Bool {
    guard let value = values[name] else { return fallback }
    guard case .bool(let flag) = value else {
      throw InteropError("badParameter", "\(name) is not true or false")
    }
    return flag
  }

  func bytes(_ name: String) throws(InteropError) -> [UInt8] {
    try Parameters.bytes(try value(name), name)
  }

  func optionalBytes(_ name: String) throws(InteropError) -> [UInt8]? {
    guard let value = values[name] else { return nil }
    return try Parameters.bytes(value, name)
  }

  func list(_ name: String) throws(InteropError) -> [JSON] {
    guard let items = try value(name).items else {
      throw InteropError("badParameter", "\(name) is not a list")
    }
    return items
  }

  static func bytes(_ value: JSON, _ name: String) throws(InteropError) -> [UInt8] {
    guard let text = value.text, let bytes = Hex.decode(text) else {
      throw InteropError("badParameter", "\(name) is not hexadecimal")
    }
    return bytes
  }

  func message(_ name: String) throws(InteropError) -> MLSMessage {
    try Parameters.decode(MLSMessage.self, try bytes(name), name)
  }

  func ratchetTree() throws(InteropError) -> RatchetTreeExtension? {
    guard let bytes = try optionalBytes("ratchet_tree") else { return nil }
    return try Parameters.decode(RatchetTreeExtension.self, bytes, "ratchet_tree")
  }

  func keyPackages() throws(InteropError) -> [KeyPackage] {
    var result: [KeyPackage] = []
    for item in try list("key_packages") { result.append(try Parameters.keyPackage(item)) }
    return result
  }

  static func keyPackage(_ value: JSON) throws(InteropError) -> KeyPackage {
    let bytes = try bytes(value, "key package")
    guard case .keyPackage(let keyPackage) = try decode(MLSMessage.self, bytes, "key package") else {
      throw InteropError("badParameter", "not an MLSMessage with a key package")
    }
    return keyPackage
  }

  private static func decode<T: MLSCodable>(
    _ type: T.Type, _ bytes: [UInt8], _ name: String
  ) throws(InteropError) -> T {
    do { return try T(decoding: bytes) } catch { throw InteropError("malformed", "\(name): \(error)") }
  }
}
