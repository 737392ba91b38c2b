import PalbeCrypto
import PalbeProtobuf
import PalbeUnits
import PalbeWire

/// A group's name and timer, sealed for the members of one epoch and kept by the server (S0-30).
///
/// Who commits seals it again under the epoch that begins, so that a new member reads it, and one that was removed does
/// not. Bytes: 1, a random nonce of 12, AES-256-GCM of the padded profile. Group and epoch are authenticated with it.
package enum SealedProfile {
  /// Of the secret in the epoch's key schedule: another than that of calls.
  package static let exporterLabel = "palbe group profile"
  /// Bytes of that secret.
  package static let secretByteCount = 32
  /// Bytes of a sealed profile at most, as the server has it.
  package static let byteLimit = 4 << 10
  private static let format: UInt8 = 1
  private static let nonceByteCount = 12

  /// Seals a profile.
  /// - Parameters:
  ///   - secret: of the epoch, exported under `exporterLabel` with an empty context.
  ///   - group: the group's MLS id.
  package static func seal(
    _ profile: GroupProfile, secret: borrowing SymmetricKey, group: [UInt8], epoch: UInt64,
    using random: inout RandomSource
  ) throws(SealedProfileError) -> [UInt8] {
    var plaintext: [UInt8]
    do throws(ContentError) { plaintext = try ProfileWire(profile).serialized() } catch {
      throw .profile(error)
    }
    Padding.pad(&plaintext)
    let nonce = random.bytes(nonceByteCount)
    do throws(CryptoError) {
      let sealed = try AEADContext.Algorithm.aes256GCM.seal(
        plaintext.span, key: secret.span, nonce: nonce.span, authenticating: authenticated(group, epoch).span)
      return [format] + nonce + sealed
    } catch { throw .crypto(error) }
  }

  /// Opens a profile that the server had. Throws `notAuthentic` for one of another group or epoch.
  package static func open(
    _ sealed: Span<UInt8>, secret: borrowing SymmetricKey, group: [UInt8], epoch: UInt64
  ) throws(SealedProfileError) -> GroupProfile {
    guard sealed.count <= byteLimit else { throw .tooLong(limit: byteLimit) }
    guard sealed.count > nonceByteCount else { throw .truncated }
    guard sealed[0] == format else { throw .format(sealed[0]) }
    let plaintext: [UInt8]
    do throws(CryptoError) {
      plaintext = try AEADContext.Algorithm.aes256GCM.open(
        sealed.extracting((1 + nonceByteCount)...), key: secret.span,
        nonce: sealed.extracting(1..<1 + nonceByteCount), authenticating: authenticated(group, epoch).span)
    } catch .authenticationFailure { throw .notAuthentic } catch { throw .crypto(error) }
    guard let count = Padding.messageByteCount(in: plaintext.span) else { throw .profile(.padding) }
    do throws(ContentError) {
      return try GroupProfile(serialized: plaintext.span.extracting(0..<count))
    } catch { throw .profile(error) }
  }

  /// "pbprof1", the epoch, the group's MLS id.
  private static func authenticated(_ group: [UInt8], _ epoch: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(utf8: "pbprof1")
    writer.uint64(epoch)
    writer.append(group)
    return writer.bytes
  }
}

/// Why a profile is not sealed or opened.
package enum SealedProfileError: Error, Equatable, Sendable {
  /// It is longer than the server keeps.
  case tooLong(limit: Int)
  /// It ends before its ciphertext.
  case truncated
  /// A format that this code does not read.
  case format(UInt8)
  /// It was changed, or sealed for another group or epoch.
  case notAuthentic
  /// What is in it is no profile, or cannot be.
  case profile(ContentError)
  /// The cipher failed.
  case crypto(CryptoError)
}

extension GroupProfile {
  init(serialized bytes: Span<UInt8>) throws(ContentError) {
    let wire: ProfileWire
    do throws(ProtobufError) {
      wire = try ProfileWire(serialized: bytes, limits: ProtobufLimits(depth: 4, messages: 16))
    } catch { throw .malformed(error) }
    self = try wire.value()
  }
}
