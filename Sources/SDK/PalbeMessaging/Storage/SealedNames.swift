import PalbeCrypto
import PalbeMLSFiles

/// Names of groups and records that say nothing to who lacks the key, and under which prefixes still work.
///
/// A group's scope is its identifier sealed (a keyed hash of it, then AES-CTR from there), the same each time, so that
/// the file itself says which groups there are. A record's name is covered byte by byte: each byte is combined with the
/// first byte of a keyed hash of the scope and of the name's bytes before it. Equal beginnings so stay equal, in one
/// scope only, and the first byte after them shows how two names differ in it; all that follows is unrelated.
final class SealedNames: RecordNaming {
  private static let tagByteCount = 16
  private static let own: [UInt8] = [0]
  let groupScopes: [UInt8] = [1]

  private var tags: HMACContext<SHA256>
  private var covers: HMACContext<SHA256>
  private var cipher: AESCTRContext

  init(_ keys: borrowing SealKeys) {
    tags = HMACContext(key: keys.tags.span)
    covers = HMACContext(key: keys.names.span)
    // The length is right by construction.
    cipher = try! AESCTRContext(key: keys.groups.span)
  }

  func scope(of group: [UInt8]?) -> [UInt8] {
    guard let group else { return Self.own }
    let tag = tag(of: group)
    return groupScopes + tag + crypt(group, from: tag)
  }

  func group(of scope: [UInt8]) -> [UInt8]? {
    guard scope.starts(with: groupScopes), scope.count > Self.tagByteCount else { return nil }
    let tag = Array(scope[1..<1 + Self.tagByteCount])
    let group = crypt(Array(scope[(1 + Self.tagByteCount)...]), from: tag)
    return self.tag(of: group) == tag ? group : nil
  }

  private func tag(of group: [UInt8]) -> [UInt8] {
    var tag = [UInt8](repeating: 0, count: Self.tagByteCount)
    var output = tag.mutableSpan
    tags.authenticate(group.span, into: &output)
    return tag
  }

  private func crypt(_ bytes: [UInt8], from tag: [UInt8]) -> [UInt8] {
    var result = bytes
    var output = result.mutableSpan
    cipher.apply(in: &output, range: 0..<bytes.count, counterBlock: tag.span)
    return result
  }

  func inFile(_ name: [UInt8], in scope: [UInt8]) -> [UInt8] {
    var stored = name
    for place in name.indices { stored[place] ^= cover(scope, name.span.extracting(0..<place)) }
    return stored
  }

  func names(_ stored: [[UInt8]], in scope: [UInt8]) -> [[UInt8]] {
    var names: [[UInt8]] = []
    names.reserveCapacity(stored.count)
    var lastStored: [UInt8] = []
    var last: [UInt8] = []
    for stored in stored {
      // Neighbours have most bytes in common.
      var same = 0
      while same < min(stored.count, lastStored.count), stored[same] == lastStored[same] { same += 1 }
      var name = Array(last[..<same])
      name.reserveCapacity(stored.count)
      for place in same..<stored.count { name.append(stored[place] ^ cover(scope, name.span)) }
      names.append(name)
      (lastStored, last) = (stored, name)
    }
    return names
  }

  private func cover(_ scope: [UInt8], _ before: Span<UInt8>) -> UInt8 {
    var code: [1 of UInt8] = [0]
    var output = code.mutableSpan
    covers.authenticate(scope.span, before, into: &output)
    return code[0]
  }
}
