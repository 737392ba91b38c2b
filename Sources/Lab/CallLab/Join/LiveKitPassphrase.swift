import Foundation
import Glibc
import PalbeCrypto
import PalbeFrameEncryption

/// Where the passphrase of a call in LiveKit's frame format comes from. Never the command line, where others can read it.
public struct LiveKitPassphrase: Sendable {
  /// The environment variable that is read when no file is named.
  public static let variable = "PALBE_PASSPHRASE"
  private static let limit = 65_536

  /// A file whose bytes are the passphrase, without a line's end behind them; nil for the environment.
  public var path: String?
  /// How the key is made of it.
  public var derivation: Derivation

  /// The two that LiveKit's clients have.
  public enum Derivation: String, CaseIterable, Sendable {
    case pbkdf2, hkdf
  }

  /// PBKDF2 is what clients do unless told otherwise.
  public init(path: String?, derivation: Derivation = .pbkdf2) {
    self.path = path
    self.derivation = derivation
  }

  /// Reads the passphrase and derives the key: tens of milliseconds.
  func key() throws(JoinFailure) -> SharedLiveKitKey {
    let secret: SymmetricKey
    if let path { secret = try Self.read(path) } else { secret = try Self.environment() }
    do throws(FrameKeyError) {
      return SharedLiveKitKey(try LiveKitKey(secret.span, derivation: derivation == .hkdf ? .hkdf : .pbkdf2))
    } catch {
      throw JoinFailure(path.map { "the passphrase in '\($0)' is empty" } ?? "\(Self.variable) is empty")
    }
  }

  private static func environment() throws(JoinFailure) -> SymmetricKey {
    guard let value = getenv(variable) else {
      throw JoinFailure("no passphrase: name a file with '--passphrase-file', or set \(variable)")
    }
    return SymmetricKey(byteCount: strlen(value)) { output in
      for index in 0..<output.freeCapacity { output.append(UInt8(bitPattern: value[index])) }
    }
  }

  private static func read(_ path: String) throws(JoinFailure) -> SymmetricKey {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path, errno) }
    defer { close(descriptor) }
    let bytes = try SymmetricKey(byteCount: limit + 1) { (output) throws(JoinFailure) in
      while !output.isFull {
        let count = output.withUnsafeMutableBufferPointer { buffer, filled in
          let count = Glibc.read(descriptor, buffer.baseAddress! + filled, buffer.count - filled)
          filled += max(0, count)
          return count
        }
        if count == 0 { break }
        if count < 0, errno != EINTR { throw unreadable(path, errno) }
      }
    }
    let span = bytes.span
    guard span.count <= limit else {
      throw JoinFailure("the passphrase in '\(path)' is above \(limit) bytes")
    }
    var end = span.count
    if end > 0, span[end - 1] == UInt8(ascii: "\n") { end -= 1 }
    if end > 0, end < span.count, span[end - 1] == UInt8(ascii: "\r") { end -= 1 }
    return SymmetricKey(copying: span.extracting(first: end))
  }

  private static func unreadable(_ path: String, _ code: Int32) -> JoinFailure {
    JoinFailure("cannot read '\(path)': \(String(cString: strerror(code)))")
  }
}
