import Foundation
import PalbeMLSInterop
import PalbeTestKit
import Testing

@Suite("mls-interop: two peers run every method against each other")
struct ScriptTests {
  @Test("In one process, in every suite", arguments: [1, 2, 3, 4, 5, 6, 7] as [Int64])
  func local(suite: Int64) throws {
    try run(LocalPeer(seed: 1), LocalPeer(seed: 2), suite: suite)
  }

  @Test(
    "Two mls-interop processes with their storage in files, in every suite; both end with their input",
    arguments: [1, 2, 3, 4, 5, 6, 7] as [Int64])
  func processes(suite: Int64) throws {
    let folder = try TemporaryFolder()
    let first = try ProcessPeer(storage: folder.path("first.db"))
    let second = try ProcessPeer(storage: folder.path("second.db"))
    try run(first, second, suite: suite)
    let line = try first.answer("garbage")
    #expect(JSON.parse(line)?["ok"] == false)
    #expect(try first.finish() == 0)
    #expect(try second.finish() == 0)
  }

  /// What the driver promises to other implementations.
  private static let methods: Set<String> = [
    "hello", "create_client", "key_package", "create_group", "add", "remove", "update", "commit",
    "propose_add", "propose_remove", "propose_update", "merge", "clear_pending", "join", "external_join",
    "group_info", "process", "encrypt", "decrypt", "export_secret", "epoch", "export_tree", "roster",
    "set_psk",
    "save", "load",
  ]

  private func agree(_ left: JSON, _ right: JSON, sourceLocation: SourceLocation = #_sourceLocation) {
    let context = left["context"]
    #expect(context != nil && context == right["context"], sourceLocation: sourceLocation)
    for name in ["group_id", "tree_hash", "confirmed_transcript_hash", "epoch_authenticator"] {
      #expect(context?[name]?.text != nil, sourceLocation: sourceLocation)
    }
  }

  private func value(_ result: JSON, _ name: String) throws -> JSON { try #require(result[name], "\(name)") }

  /// Alice and Carol live at one peer, Bob at the other.
  private func run(_ here: any Peer, _ there: any Peer, suite: Int64) throws {
    let hello = try here.ask("hello")
    #expect(hello["suites"] == [1, 2, 3, 4, 5, 6, 7])
    var unused = Set(try #require(hello["methods"]?.items).compactMap(\.text))
    #expect(unused.isSuperset(of: Self.methods), "missing: \(Self.methods.subtracting(unused).sorted())")
    func ask(_ peer: any Peer, _ method: String, _ parameters: [String: JSON] = [:]) throws -> JSON {
      unused.remove(method)
      return try peer.ask(method, parameters)
    }
    _ = try ask(here, "hello")

    let alice = try ask(here, "create_client", ["client": "alice", "suite": .integer(suite)])
    #expect(alice["identity"] == "616c696365")
    _ = try ask(
      here, "create_client",
      ["client": "carol", "suite": .integer(suite), "name": "Carol", "ratchet_tree_extension": false])
    let bob = try ask(
      there, "create_client", ["client": "bob", "suite": .integer(suite), "identity": "b0b0"])
    #expect(bob["identity"] == "b0b0")

    // Add, join, talk.
    let created = try ask(here, "create_group", ["client": "alice", "group": "a", "group_id": "0102"])
    #expect(created["context"]?["group_id"] == "0102")
    #expect(created["context"]?["epoch"] == 0)
    let bobsPackage = try value(try ask(there, "key_package", ["client": "bob"]), "message")
    let added = try ask(
      here, "add", ["group": "a", "key_packages": [bobsPackage], "merge": false, "force_path": false])
    agree(added, created)
    let merged = try ask(here, "merge", ["group": "a"])
    let joined = try ask(
      there, "join", ["client": "bob", "welcome": try value(added, "welcome"), "group": "b"])
    agree(merged, joined)
    let sent = try ask(there, "encrypt", ["group": "b", "plaintext": "68690a", "aad": "aa"])
    let message = try value(sent, "message")
    let read = try ask(here, "decrypt", ["group": "a", "message": message])
    #expect(read["plaintext"] == "68690a" && read["sender"] == 1)
    let again = try ask(here, "process", ["group": "a", "message": message])
    #expect(again["kind"] == "duplicate")
    let more = try ask(there, "encrypt", ["group": "b", "plaintext": ""])
    let data = try ask(here, "process", ["group": "a", "message": try value(more, "message")])
    #expect(data["kind"] == "application" && data["data"] == "" && data["sender"] == 1)

    // Proposals by reference, committed by the other side.
    let carols = try ask(here, "key_package", ["client": "carol", "last_resort": true])
    let proposals = [
      try ask(there, "propose_add", ["group": "b", "key_packages": [try value(carols, "message")]]),
      try ask(there, "propose_update", ["group": "b"]),
    ]
    for list in proposals {
      for proposal in try #require(list["proposals"]?.items) {
        let result = try ask(here, "process", ["group": "a", "message": proposal])
        #expect(result["kind"] == "proposal" && result["sender"] == 1)
      }
    }
    for (peer, client) in [(here, "alice"), (here, "carol"), (there, "bob")] {
      _ = try ask(peer, "set_psk", ["client": .string(client), "psk_id": "77", "psk": "001122"])
    }
    let commit = try ask(here, "commit", ["group": "a", "psk_ids": ["77"]])
    let processed = try ask(there, "process", ["group": "b", "message": try value(commit, "commit")])
    agree(commit, processed)
    #expect(processed["effect"]?["added"] == [2] && processed["effect"]?["updated"] == [1])
    let carol = try ask(
      here, "join", ["client": "carol", "welcome": try value(commit, "welcome"), "group": "c"])
    agree(commit, carol)
    let echo = try ask(here, "process", ["group": "a", "message": try value(commit, "commit")])
    #expect(echo["kind"] == "own")

    // A cleared commit, also after a restart of the group; then an update.
    _ = try ask(there, "update", ["group": "b", "merge": false])
    agree(try ask(there, "save", ["group": "b"]), processed)
    let loaded = try ask(there, "load", ["client": "bob", "group_id": "0102", "group": "b"])
    agree(loaded, processed)
    let cleared = try ask(there, "clear_pending", ["group": "b"])
    agree(cleared, processed)
    let update = try ask(there, "update", ["group": "b"])
    for name in ["a", "c"] {
      let result = try ask(
        here, "process", ["group": .string(name), "message": try value(update, "commit")])
      agree(result, update)
    }

    // Everything that can be read is the same on both sides.
    for method in ["epoch", "export_tree", "roster"] {
      #expect(try ask(here, method, ["group": "a"]) == ask(there, method, ["group": "b"]))
    }
    let secret: [String: JSON] = ["label": "call", "context": "00ff", "length": 32]
    let ours = try ask(here, "export_secret", secret.merging(["group": "c"]) { $1 })
    let theirs = try ask(
      there, "export_secret", ["group": "b", "label_hex": "63616c6c", "context": "00ff", "length": 32])
    #expect(ours["secret"] == theirs["secret"] && ours["secret"]?.text?.count == 64)

    // Removal, and the way back by an external commit.
    let leaving = try ask(there, "propose_remove", ["group": "b", "members": [["leaf": 1]]])
    for name in ["a", "c"] {
      for proposal in try #require(leaving["proposals"]?.items) {
        _ = try ask(here, "process", ["group": .string(name), "message": proposal])
      }
    }
    let removal = try ask(here, "commit", ["group": "c"])
    _ = try ask(here, "process", ["group": "a", "message": try value(removal, "commit")])
    let removed = try ask(there, "process", ["group": "b", "message": try value(removal, "commit")])
    #expect(removed["effect"]?["self_removed"] == true)
    #expect(try there.refusal("encrypt", ["group": "b", "plaintext": "00"]) == "removed")
    let info = try ask(here, "group_info", ["group": "a", "ratchet_tree": false])
    let tree = try ask(here, "export_tree", ["group": "a"])
    let back = try ask(
      there, "external_join",
      [
        "client": "bob", "group_info": try value(info, "group_info"), "group": "b2",
        "ratchet_tree": try value(tree, "ratchet_tree"),
      ])
    for name in ["a", "c"] {
      let result = try ask(
        here, "process", ["group": .string(name), "message": try value(back, "commit")])
      agree(result, back)
    }
    // The tree beside the Welcome, and members by each name that they have.
    let package = try value(try ask(there, "key_package", ["client": "bob"]), "message")
    for member: JSON in [["identity": "b0b0"], ["key_package": package]] {
      #expect(
        try here.refusal("remove", ["group": "a", "members": [member, member]]) == "severalForLeaf")
    }
    let kick = try ask(here, "remove", ["group": "a", "members": ["carol"]])
    let result = try ask(there, "process", ["group": "b2", "message": try value(kick, "commit")])
    agree(kick, result)
    #expect(unused.isEmpty, "methods without a test: \(unused.sorted())")
  }
}

@Suite("mls-interop: bad lines are answered, and the session goes on")
struct BadLineTests {
  @Test("Each bad line has its kind")
  func lines() throws {
    let peer = LocalPeer(seed: 1)
    for line in ["", "{", "7", "[]", "null", "\"x\"", "{\"id\": 1}", "{\"method\": 3}"] {
      let answer = try #require(JSON.parse(peer.answer(line)))
      #expect(answer["ok"] == false && answer["kind"] == "badRequest", "\(line)")
    }
    #expect(try peer.refusal("nothing") == "unknownMethod")
    #expect(try peer.refusal("save", ["group": "g"]) == "unknownName")
    #expect(try peer.refusal("load", ["client": "a", "group_id": "00", "group": "g"]) == "unknownName")
    #expect(try peer.refusal("create_client") == "badParameter")
    #expect(try peer.refusal("create_client", ["client": "a", "suite": 9]) == "unsupportedSuite")
    #expect(try peer.refusal("create_client", ["client": "a", "suite": -1]) == "badParameter")
    #expect(try peer.refusal("create_client", ["client": "a", "identity": "0"]) == "badParameter")
    try peer.ask("create_client", ["client": "a"])
    #expect(try peer.refusal("create_client", ["client": "a"]) == "badParameter")
    #expect(try peer.refusal("key_package", ["client": "b"]) == "unknownName")
    try peer.ask("create_group", ["client": "a", "group": "g"])
    #expect(try peer.refusal("create_group", ["client": "a", "group": "g"]) == "badParameter")
    #expect(try peer.refusal("epoch", ["group": "h"]) == "unknownName")
    #expect(try peer.refusal("load", ["client": "a", "group_id": "00", "group": "h"]) == "unknownName")
    #expect(try peer.refusal("load", ["client": "a", "group_id": "00", "group": "g"]) == "badParameter")
    #expect(try peer.refusal("process", ["group": "g", "message": "0001"]) == "malformed")
    #expect(try peer.refusal("add", ["group": "g", "key_packages": ["00"]]) == "malformed")
    #expect(try peer.refusal("add", ["group": "g", "key_packages": "00"]) == "badParameter")
    #expect(try peer.refusal("merge", ["group": "g"]) == "noCommitPending")
    #expect(try peer.refusal("remove", ["group": "g", "members": [["leaf": 5]]]) == "removesNobody")
    #expect(try peer.refusal("remove", ["group": "g", "members": [["leaf": -5]]]) == "badParameter")
    #expect(try peer.refusal("remove", ["group": "g", "members": ["z"]]) == "unknownName")
    #expect(try peer.refusal("commit", ["group": "g", "psk_ids": ["01"]]) == "unknownPreSharedKey")
    #expect(
      try peer.refusal("export_secret", ["group": "g", "label": "x", "length": 9_999]) == "exportTooLong")
    try peer.ask("export_secret", ["group": "g", "label_hex": "ff", "length": 1])
    let keyPackage = try peer.ask("key_package", ["client": "a"])
    let answer = try peer.send(
      "process", ["group": "g", "message": try #require(keyPackage["message"])])
    #expect(answer["kind"] == "notAGroupMessage" && answer["rule"] == "V516")
    try peer.ask("update", ["group": "g"])
  }
}
