import Foundation
import Glibc
import PalbeBackendCore
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import PalbeBackendServer

@Suite("Blobs on the disk")
struct BlobFilesTests {
  private let folder: TemporaryFolder
  private var random = RandomSource(seed: 3)

  init() throws { folder = try TemporaryFolder() }

  private mutating func id() -> BlobID {
    BlobID(at: WallTime(microseconds: 1_700_000_000_000_000), using: &random)
  }

  @Test("Written, cut, continued, finished: a name appears when all bytes are there")
  mutating func life() throws {
    let files = try BlobFiles(folder: folder.path("blobs"))
    let id = id()
    #expect(try files.state(of: id) == .none)
    var (descriptor, length) = try files.openPart(of: id)
    #expect(length == 0)
    try files.write([1, 2, 3], at: 0, to: descriptor)
    close(descriptor)
    #expect(try files.state(of: id) == .partial(3))
    #expect(throws: BlobFault.missing) { try files.open(id) }
    (descriptor, length) = try files.openPart(of: id)
    #expect(length == 3)
    try files.write([4, 5], at: 3, to: descriptor)
    try files.finish(id, descriptor)
    close(descriptor)
    #expect(try files.state(of: id) == .whole(5))
    #expect(try Data(contentsOf: URL(fileURLWithPath: files.path(of: id))) == Data([1, 2, 3, 4, 5]))
    // After another start of the process all is there.
    #expect(try BlobFiles(folder: folder.path("blobs")).all().map(\.state) == [.whole(5)])
    try files.remove(id)
    try files.remove(id)
    #expect(try files.all().isEmpty)
  }

  @Test("Stopped before any change of the disk, the blob is not there or whole, and the upload can go on")
  mutating func crashes() throws {
    let whole: [UInt8] = Array(0..<100)
    var reached = Set<BlobFiles.Step>()
    for number in 0... {
      let id = id()
      var files = try BlobFiles(folder: folder.path("crash\(number)"))
      let count = Mutex(0)
      let steps = Mutex([BlobFiles.Step]())
      files.willTake = { (step) throws(BlobFault) in
        guard
          count.withLock({
            $0 += 1
            return $0
          }) <= number
        else { throw .failed(code: 0) }
        steps.withLock { $0.append(step) }
      }
      func upload(_ files: BlobFiles) throws(BlobFault) {
        let (descriptor, length) = try files.openPart(of: id)
        defer { close(descriptor) }
        for start in stride(from: Int(length), to: 100, by: 40) {
          try files.write(Array(whole[start..<min(100, start + 40)]), at: Int64(start), to: descriptor)
        }
        try files.finish(id, descriptor)
      }
      let isDone: Bool
      do throws(BlobFault) {
        try upload(files)
        isDone = true
      } catch { isDone = false }
      reached.formUnion(steps.withLock { $0 })
      // What another process finds.
      let after = try BlobFiles(folder: folder.path("crash\(number)"))
      switch try after.state(of: id) {
      case .whole(let count): #expect(count == 100 && reached.contains(.rename))
      case .partial(let count): #expect(!isDone && count <= 100)
      case .none: #expect(!isDone)
      }
      if case .whole = try after.state(of: id) {} else { try upload(after) }
      #expect(try Data(contentsOf: URL(fileURLWithPath: after.path(of: id))) == Data(whole))
      guard !isDone else {
        // The bytes are on the medium before the name, and the name before the answer.
        let order = steps.withLock { $0 }
        let rename = try #require(order.firstIndex(of: .rename))
        #expect(order[rename - 1] == .syncFile && order[rename + 1] == .syncFolder)
        break
      }
      try #require(number < 50)
    }
    #expect(reached == [.makeFolder, .create, .write, .syncFile, .rename, .syncFolder])
  }

  @Test("What is not whole is dropped after another start of the machine")
  mutating func boot() throws {
    let files = try BlobFiles(folder: folder.path("blobs"))
    let (part, whole) = (id(), id())
    for id in [part, whole] {
      let (descriptor, _) = try files.openPart(of: id)
      defer { close(descriptor) }
      try files.write([1], at: 0, to: descriptor)
      if id == whole { try files.finish(id, descriptor) }
    }
    #expect(try BlobFiles(folder: folder.path("blobs")).state(of: part) == .partial(1))
    try Data("another".utf8).write(to: URL(fileURLWithPath: folder.path("blobs") + "/.boot"))
    let after = try BlobFiles(folder: folder.path("blobs"))
    #expect(try after.state(of: part) == .none && after.state(of: whole) == .whole(1))
  }

  @Test("Bytes without a row of the backend go at the start; files that are no blobs stay")
  mutating func orphans() throws {
    let files = try BlobFiles(folder: folder.path("blobs"))
    let ids = (0..<5).map { _ in id() }
    for id in ids {
      let (descriptor, _) = try files.openPart(of: id)
      defer { close(descriptor) }
      try files.write([1, 2], at: 0, to: descriptor)
      if id != ids[4] { try files.finish(id, descriptor) }
    }
    try Data().write(to: URL(fileURLWithPath: files.path(of: ids[0]) + ".note"))
    let all = try BlobStore(files: files, settings: .init())
    #expect(all.counts.storedCount == 4 && all.counts.storedByteCount == 8 && all.orphanCount == 0)
    all.stop()
    // What cannot be removed is still there, and counted.
    var failing = files
    failing.willTake = { (step) throws(BlobFault) in if step == .remove { throw .failed(code: EIO) } }
    let stuck = try BlobStore(files: failing, settings: .init(), knowing: [ids[0]])
    #expect(stuck.orphanCount == 4 && stuck.counts.faultCount == 4 && stuck.counts.storedCount == 4)
    stuck.stop()
    let store = try BlobStore(files: files, settings: .init(), knowing: [ids[0], ids[1]])
    #expect(store.orphanCount == 3 && store.counts.deletedCount == 3)
    #expect(try Set(files.all().map(\.id)) == [ids[0], ids[1]])
    #expect(store.counts.storedCount == 2 && store.counts.storedByteCount == 4)
    #expect(FileManager.default.fileExists(atPath: files.path(of: ids[0]) + ".note"))
    store.stop()
  }
}
