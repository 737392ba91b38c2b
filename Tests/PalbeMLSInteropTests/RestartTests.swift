import Foundation
import PalbeMLSInterop
import PalbeTestKit
import PalbeUnits
import Testing

@Suite("mls-interop: groups outlive the process")
struct RestartTests {
  /// Alice with a file, Bob in this process; both in one group.
  private func pair(_ alice: any Peer, _ bob: any Peer, suite: Int64 = 1) throws {
    try alice.ask("create_client", ["client": "alice", "suite": .integer(suite)])
    try bob.ask("create_client", ["client": "bob", "suite": .integer(suite)])
    try alice.ask("create_group", ["client": "alice", "group": "a", "group_id": "0102"])
    let package = try #require(try bob.ask("key_package", ["client": "bob"])["message"])
    let added = try alice.ask("add", ["group": "a", "key_packages": [package]])
    try bob.ask("join", ["client": "bob", "welcome": try #require(added["welcome"]), "group": "b"])
  }

  private func load(_ alice: any Peer) throws -> JSON {
    try alice.ask("load", ["client": "alice", "group_id": "0102", "group": "a"])
  }

  @Test(
    "Faults 1646, 628: a new process merges the pending commit, reads both epochs, and has its keys and packages"
  )
  func newProcess() throws {
    let folder = try TemporaryFolder()
    let bob = try ProcessPeer()
    let first = try ProcessPeer(storage: folder.path("alice.db"))
    try pair(first, bob)
    let package = try #require(try first.ask("key_package", ["client": "alice"])["message"])
    try first.ask("set_psk", ["client": "alice", "psk_id": "77", "psk": "001122"])
    try bob.ask("set_psk", ["client": "bob", "psk_id": "77", "psk": "001122"])
    let old = try bob.ask("encrypt", ["group": "b", "plaintext": "01"])
    let passedOver = try bob.ask("encrypt", ["group": "b", "plaintext": "02"])
    let newest = try bob.ask("encrypt", ["group": "b", "plaintext": "03"])
    try first.ask("decrypt", ["group": "a", "message": try #require(newest["message"])])
    let commit = try first.ask("commit", ["group": "a", "psk_ids": ["77"], "merge": false])
    try first.ask("save", ["group": "a"])
    #expect(try first.finish() == 0)

    let second = try ProcessPeer(storage: folder.path("alice.db"))
    let loaded = try load(second)
    #expect(loaded["context"] == commit["context"])
    #expect(loaded["last_data"] == "03" && loaded["has_pending"] == true)
    #expect(
      try second.ask("decrypt", ["group": "a", "message": try #require(old["message"])])["plaintext"] == "01")
    let merged = try second.ask("merge", ["group": "a"])
    let processed = try bob.ask(
      "process", ["group": "b", "message": try #require(commit["commit"])])
    #expect(merged["context"] == processed["context"])
    #expect(
      try second.ask("decrypt", ["group": "a", "message": try #require(passedOver["message"])])["plaintext"]
        == "02")
    let text = try bob.ask("encrypt", ["group": "b", "plaintext": "04"])
    #expect(
      try second.ask("decrypt", ["group": "a", "message": try #require(text["message"])])["plaintext"] == "04"
    )
    // A key package of the first process.
    try bob.ask("create_group", ["client": "bob", "group": "other"])
    let added = try bob.ask("add", ["group": "other", "key_packages": [package]])
    let welcome = try #require(added["welcome"])
    try second.ask("join", ["client": "alice", "welcome": welcome, "group": "o"])
    #expect(try second.finish() == 0)
    // It was used up.
    let third = try ProcessPeer(storage: folder.path("alice.db"))
    #expect(
      try third.refusal("join", ["client": "alice", "welcome": welcome, "group": "p"]) == "noKeyPackage")
    #expect(try third.refusal("create_client", ["client": "alice"]) == "badParameter")
    #expect(try third.finish() == 0)
  }

  @Test(
    "Fault 628: a pending commit is cleared after a restart, and the group goes on, in every suite",
    arguments: [1, 2, 3, 4, 5, 6, 7] as [Int64])
  func clears(suite: Int64) throws {
    let folder = try TemporaryFolder()
    let bob = LocalPeer(seed: 2)
    do {
      let first = LocalPeer(seed: 1, storage: folder.path("alice.db"))
      try pair(first, bob, suite: suite)
      try first.ask("update", ["group": "a", "merge": false])
    }
    let second = LocalPeer(seed: 3, storage: folder.path("alice.db"))
    #expect(try load(second)["has_pending"] == true)
    #expect(try second.refusal("update", ["group": "a"]) == "commitPending")
    try second.ask("clear_pending", ["group": "a"])
    let update = try second.ask("update", ["group": "a"])
    let processed = try bob.ask(
      "process", ["group": "b", "message": try #require(update["commit"])])
    #expect(processed["context"] == update["context"])
  }

  @Test("Item 4, fault 216: killed in the middle, a process has lost no message and uses no key twice")
  func killed() throws {
    let folder = try TemporaryFolder()
    let bob = try ProcessPeer()
    var alice = try ProcessPeer(storage: folder.path("alice.db"))
    try pair(alice, bob)
    var random = RandomSource(seed: 9)
    var sent = 0
    var read = 0
    for round in 0..<10 {
      // Bob's messages, and what Alice is asked to do with them and besides; the answers are not waited for.
      var data: [String] = []
      for index in 0..<12 {
        let plain = "\(round % 10)\(index % 10)"
        data.append(plain)
        let message = try bob.ask("encrypt", ["group": "b", "plaintext": .string(plain)])
        try alice.write(
          request(100 + index, "process", ["group": "a", "message": message["message"] ?? .null]))
        try alice.write(request(200 + index, "encrypt", ["group": "a", "plaintext": "aa"]))
        if index % 4 == 3 {
          try alice.write(request(300, "update", ["group": "a", "merge": false]))
          try alice.write(request(300, "clear_pending", ["group": "a"]))
        }
      }
      let answered = try alice.killAfter(lines: Int.random(in: 1...24, using: &random))
      alice = try ProcessPeer(storage: folder.path("alice.db"))
      let loaded = try load(alice)

      // What was answered is there, and at most one more: the one whose answer was on the way.
      let results = answered.compactMap(JSON.parse)
      #expect(results.allSatisfy { $0["ok"] == true })
      let processed = results.compactMap { $0["result"]?["data"]?.text }
      #expect(processed == Array(data.prefix(processed.count)))
      let last = loaded["last_data"]?.text
      let next = processed.count < data.count ? data[processed.count] : nil
      #expect(
        last == processed.last || last == next || (processed.isEmpty && round == 0 && last == nil)
          || (processed.isEmpty && last == "\((round - 1) % 10)1"))
      read += processed.count

      // Bob reads every message that came out, each with a key of its own.
      for result in results where result["result"]?["message"] != nil {
        try bob.ask("decrypt", ["group": "b", "message": try #require(result["result"]?["message"])])
        sent += 1
      }
      if loaded["has_pending"] == true { try alice.ask("clear_pending", ["group": "a"]) }
      let after = try alice.ask("encrypt", ["group": "a", "plaintext": "bb"])
      try bob.ask("decrypt", ["group": "b", "message": try #require(after["message"])])
      // A new epoch for the next round, which both reach.
      let update = try alice.ask("update", ["group": "a"])
      try bob.ask("process", ["group": "b", "message": try #require(update["commit"])])
      let text = try bob.ask("encrypt", ["group": "b", "plaintext": .string("\(round % 10)1")])
      try alice.ask("decrypt", ["group": "a", "message": try #require(text["message"])])
    }
    #expect(sent > 20 && read > 20)
    #expect(try alice.finish() == 0)
  }

  private func request(_ id: Int, _ method: String, _ parameters: [String: JSON]) -> String {
    JSON.object(["id": .integer(Int64(id)), "method": .string(method), "params": .object(parameters)]).line
  }
}
