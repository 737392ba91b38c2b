import PalbeChatCore
import PalbeCrypto
import PalbeUnits
import PalbeWire
import Testing

@Suite("Attachments") struct AttachmentTests {
  let blob: BlobID = {
    var samples = Samples(seed: 2)
    return samples.id()
  }()
  static let segment = AttachmentLayout.segmentByteCount

  func file(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 * 7 % 251) } }

  func sealed(_ file: [UInt8], seed: UInt64 = 1) throws -> (
    ciphertext: [UInt8], descriptor: AttachmentDescriptor
  ) {
    var random = RandomSource(seed: seed)
    let (ciphertext, attachment) = try AttachmentCipher.seal(file.span, blob: blob, using: &random)
    return (ciphertext, attachment.descriptor(kind: .file, filename: "a", mimeType: ""))
  }

  /// Why a ciphertext is not opened; nil when it is. `trusting` it, the hash in the message is that of what came.
  func refusal(
    _ ciphertext: [UInt8], _ descriptor: AttachmentDescriptor, trusting: Bool = true
  ) -> AttachmentError? {
    var descriptor = descriptor
    if trusting { descriptor.cipherHash = SHA256.hash(ciphertext) }
    do throws(AttachmentError) {
      _ = try AttachmentCipher.open(ciphertext.span, descriptor)
      return nil
    } catch { return error }
  }

  @Test(
    "S0-45 a file of any size comes back",
    arguments: [0, 1, 4_095, 4_096, 4_097, 100_000, segment - 1, segment, segment + 1, 2 * segment + 5])
  func roundTrip(count: Int) throws {
    let file = file(count)
    let (ciphertext, descriptor) = try sealed(file)
    #expect(Int64(ciphertext.count) == descriptor.cipherByteCount)
    #expect(descriptor.plainByteCount == count)
    #expect(try AttachmentCipher.open(ciphertext.span, descriptor) == file)
  }

  @Test("S0-59 pieces of any size give the same, and no piece is longer than a segment")
  func pieces() throws {
    let file = file(Self.segment + 70_000)
    let (whole, descriptor) = try sealed(file)
    for size in [1_000, 65_536, 999_983, 3_000_000] {
      var random = RandomSource(seed: 1)
      var sealer = try AttachmentSealer(plainByteCount: Int64(file.count), blob: blob, using: &random)
      var ciphertext: [UInt8] = []
      for start in stride(from: 0, to: file.count, by: size) {
        let piece = Array(file[start..<min(start + size, file.count)])
        var offset = 0
        while offset < piece.count {
          offset += try sealer.feed(piece.span.extracting(offset...))
          while let sealed = try sealer.take() {
            #expect(sealed.count <= Self.segment + 24)
            ciphertext += sealed
          }
        }
      }
      while let sealed = try sealer.take() { ciphertext += sealed }
      #expect(ciphertext == whole)
      let cipherHash = try sealer.finish().cipherHash
      #expect(cipherHash == descriptor.cipherHash)

      var opener = try AttachmentOpener(descriptor)
      for start in stride(from: 0, to: whole.count, by: size) {
        try opener.check(whole.span.extracting(start..<min(start + size, whole.count)))
      }
      try opener.finishCheck()
      var opened: [UInt8] = []
      for start in stride(from: 0, to: whole.count, by: size) {
        let piece = Array(whole[start..<min(start + size, whole.count)])
        var offset = 0
        while offset < piece.count {
          offset += try opener.feed(piece.span.extracting(offset...))
          while let plain = try opener.take() {
            #expect(plain.count <= Self.segment)
            opened += plain
          }
        }
      }
      try opener.finish()
      #expect(opened == file)
    }
  }

  @Test("S0-46 another ciphertext is found before anything is decrypted")
  func swapped() throws {
    let (ciphertext, descriptor) = try sealed(file(5_000))
    for index in [0, 7, 8, 4_000, ciphertext.count - 1] {
      var changed = ciphertext
      changed[index] ^= 1
      #expect(refusal(changed, descriptor, trusting: false) == .hash)
      // The hash aside, the tag knows too.
      #expect(refusal(changed, descriptor) == .segment(0))
    }
    var opener = try AttachmentOpener(descriptor)
    do throws(AttachmentError) {
      _ = try opener.feed(ciphertext.span)
      Issue.record("it is taken in unchecked")
    } catch { #expect(error == .notChecked) }
    let nothing = try opener.take()
    #expect(nothing == nil)
    do throws(AttachmentError) {
      try opener.finishCheck()
      Issue.record("nothing is found to be the ciphertext")
    } catch { #expect(error == .bytesMissing(descriptor.cipherByteCount)) }
  }

  @Test("S0-46 segments that are swapped, cut off, doubled or another blob's do not open")
  func segments() throws {
    let (ciphertext, descriptor) = try sealed(file(2 * Self.segment))
    let size = Self.segment + 16
    let (prefix, first, second) = (ciphertext[..<8], ciphertext[8..<8 + size], ciphertext[(8 + size)...])
    #expect(refusal(Array(prefix + second + first), descriptor) == .segment(0))
    #expect(refusal(Array(prefix + first + first), descriptor) == .segment(1))
    // Cut at a segment's end, with sizes that say so: the first is not the last, nor one of one.
    var shorter = descriptor
    let layout = try #require(AttachmentLayout(plainByteCount: Int64(Self.segment)))
    (shorter.plainByteCount, shorter.cipherByteCount) = (layout.plainByteCount, layout.cipherByteCount)
    #expect(refusal(Array(prefix + first), shorter) == .segment(0))
    #expect(refusal(Array(prefix + first), descriptor) == .bytesMissing(Int64(size)))
    #expect(refusal(ciphertext + [0], descriptor) == .moreBytes)

    var elsewhere = descriptor
    var samples = Samples(seed: 77)
    elsewhere.blob = samples.id()
    #expect(refusal(ciphertext, elsewhere) == .segment(0))
    var otherKey = descriptor
    otherKey.key = AttachmentKey(SymmetricKey(copying: [UInt8](repeating: 1, count: 32)))
    #expect(refusal(ciphertext, otherKey) == .segment(0))
  }

  @Test("S0-46 every prefix of a ciphertext is refused")
  func truncation() throws {
    let (ciphertext, descriptor) = try sealed(file(100))
    for count in 0..<ciphertext.count {
      #expect(
        refusal(Array(ciphertext[..<count]), descriptor) == .bytesMissing(Int64(ciphertext.count - count)))
    }
  }

  @Test("S0-46 sizes that no file has are refused before a byte is kept")
  func sizes() throws {
    let (_, descriptor) = try sealed(file(100))
    for (plain, cipher) in [
      (-1, 4_120), (.min, .min), (.max, .max), (100, 4_119), (100, 4_121), (5_000, 4_120), (100, -4_120),
    ] as [(Int64, Int64)] {
      var wrong = descriptor
      (wrong.plainByteCount, wrong.cipherByteCount) = (plain, cipher)
      do throws(AttachmentError) {
        _ = try AttachmentOpener(wrong)
        Issue.record("\(plain) bytes are \(cipher) of ciphertext")
      } catch {
        #expect(error == .size(wrong.plainByteCount == 100 || wrong.plainByteCount == 5_000 ? cipher : plain))
      }
    }
    var random = RandomSource(seed: 1)
    for count in [-1, (1 << 40) + 1, .max, .min] as [Int64] {
      do throws(AttachmentError) {
        _ = try AttachmentSealer(plainByteCount: count, blob: blob, using: &random)
        Issue.record("a file of \(count) bytes")
      } catch { #expect(error == .size(count)) }
    }
  }

  @Test("S0-45 a file that is longer or shorter than it was said to be is not sealed")
  func announced() throws {
    var random = RandomSource(seed: 1)
    var sealer = try AttachmentSealer(plainByteCount: 10, blob: blob, using: &random)
    let piece = file(11)
    do throws(AttachmentError) {
      _ = try sealer.feed(piece.span)
      Issue.record("a byte more is taken in")
    } catch { #expect(error == .moreBytes) }
    let taken = try sealer.feed(piece.span.extracting(0..<9))
    let sealed = try sealer.take()
    #expect(taken == 9 && sealed == nil)
    do throws(AttachmentError) {
      _ = try sealer.finish()
      Issue.record("a file that lacks a byte is sealed")
    } catch { #expect(error == .bytesMissing(1)) }

    let untaken = try AttachmentSealer(plainByteCount: 0, blob: blob, using: &random)
    do throws(AttachmentError) {
      _ = try untaken.finish()
      Issue.record("a ciphertext that was not taken is finished")
    } catch { #expect(error == .bytesMissing(4_096)) }
  }

  @Test("S0-44 every file has a key and nonces of its own")
  func keys() throws {
    let file = file(100)
    var random = RandomSource(seed: 1)
    let (first, one) = try AttachmentCipher.seal(file.span, blob: blob, using: &random)
    let (second, other) = try AttachmentCipher.seal(file.span, blob: blob, using: &random)
    #expect(one.key != other.key)
    #expect(first[..<8] != second[..<8])
  }

  @Test("2.1 the ciphertext of a file is as long as that of every file of about its size")
  func lengths() throws {
    let lengths = Set((1_000_001...1_048_576).map { AttachmentLayout(plainByteCount: $0)!.cipherByteCount })
    #expect(lengths == [Int64(1 << 20) + 24])
    for count in [0, 1, 4_097, 1 << 20, (1 << 20) + 1, 1 << 31, 1 << 40] as [Int64] {
      let layout = try #require(AttachmentLayout(plainByteCount: count))
      let sum = (0..<layout.segmentCount).prefix(4_096).reduce(0) { $0 + layout.byteCount(ofSegment: $1) }
      if layout.segmentCount <= 4_096 { #expect(Int64(sum) == layout.paddedByteCount) }
      #expect(layout.byteCount(ofSegment: layout.segmentCount - 1) > 0)
    }
  }
}
