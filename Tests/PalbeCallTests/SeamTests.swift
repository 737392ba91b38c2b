import Foundation
import PalbeCall
import PalbeCallCore
import PalbeCallLab
import PalbeFrameEncryption
import PalbeMessaging
import Synchronization
import Testing

/// Seam events, in order.
private final class Heard: Sendable {
  private let stream: AsyncStream<CallMediaEvent>
  private let continuation: AsyncStream<CallMediaEvent>.Continuation
  private let events = Mutex<[CallMediaEvent]>([])

  init() { (stream, continuation) = AsyncStream.makeStream(of: CallMediaEvent.self) }

  var all: [CallMediaEvent] { events.withLock { $0 } }

  func hear(_ event: CallMediaEvent) {
    events.withLock { $0.append(event) }
    continuation.yield(event)
  }

  func wait(for wanted: CallMediaEvent) async {
    if all.contains(wanted) { return }
    for await event in stream where event == wanted || all.contains(wanted) { return }
  }
}

private struct Authenticator: CallMediaAuthenticator {
  func sign(_ manifest: Data) throws -> Data { manifest }
  func verify(_ manifest: Data, signature: Data, identity: String) -> Bool { true }
}

private let key = Data(repeating: 7, count: 32)
private let devices = CallDevices(microphone: { VoiceSignal() }, camera: { TestCard() })

@Suite("The seam, without a server", .timeLimit(.minutes(1)))
struct SeamTests {
  @Test("S4-45: enable() registers the engine; a transport comes from the registry")
  func enable() throws {
    PalbeCall.enable()
    #expect(CallMediaRegistry.shared.isMediaAvailable)
    #expect(CallMediaRegistry.shared.makeTransport(e2ee: true) is any CallMediaRekeying)
  }

  @Test("S4-30: setMediaKey throws for an empty key, another length, and without end-to-end encryption")
  func keysThatAreRefused() async throws {
    let transport = SFUCallTransport(e2ee: true)
    for length in [0, 1, 31, 33, 64] {
      let expected = CallEngineError.key(.wrongLength(expected: 32, got: length))
      let bad = Data(repeating: 1, count: length)
      await #expect(throws: expected) { try await transport.setMediaKey(bad) }
      await #expect(throws: expected) { try await transport.setMediaKey(bad, sending: .now) }
    }
    let plain = SFUCallTransport(e2ee: false)
    await #expect(throws: CallEngineError.encryptionIsOff) { try await plain.setMediaKey(key) }
    await #expect(throws: CallEngineError.encryptionIsOff) {
      try await plain.setMediaKey(key, sending: .whenConfirmed)
    }
  }

  @Test("a key, and the same again, may be set before the call")
  func keyBeforeTheCall() async throws {
    let transport = SFUCallTransport(e2ee: true)
    try await transport.setMediaKey(key)
    try await transport.setMediaKey(key)
    await transport.confirmSendKey()
    try await transport.setMicrophoneMuted(true)
  }

  @Test(
    "S4-46: connect throws for a closed port and for what is no address; no event comes, and it cannot be used again"
  )
  func connectThrows() async throws {
    for url in ["ws://127.0.0.1:1", "nonsense"] {
      let transport = SFUCallTransport(e2ee: false)
      let heard = Heard()
      let token = try TestSFU.token("ada")
      await #expect(throws: CallEngineError.self) {
        try await transport.connect(edgeUrl: url, token: token, media: .audioVideo) { heard.hear($0) }
      }
      #expect(heard.all.isEmpty)
      await #expect(throws: CallEngineError.alreadyStarted) {
        try await transport.connect(edgeUrl: url, token: token, media: .audio) { _ in }
      }
      await #expect(throws: CallEngineError.notConnected) { try await transport.setMicrophoneMuted(true) }
      await transport.disconnect()
      await transport.disconnect()
    }
  }

  @Test("disconnect before connect ends the transport, once and for all")
  func disconnectFirst() async throws {
    let transport = SFUCallTransport(e2ee: true)
    await transport.disconnect()
    await transport.disconnect()
    await #expect(throws: CallEngineError.notConnected) { try await transport.setMediaKey(key) }
    await #expect(throws: CallEngineError.alreadyStarted) {
      try await transport.connect(edgeUrl: "ws://127.0.0.1:1", token: "t", media: .audio) { _ in }
    }
  }

  @Test("e2ee 5.4: the authenticator is kept, and removed")
  func authenticator() async {
    let transport = SFUCallTransport(e2ee: true)
    #expect(transport.mediaAuthenticator == nil)
    await transport.setMediaAuthenticator(Authenticator())
    #expect(transport.mediaAuthenticator is Authenticator)
    await transport.setMediaAuthenticator(nil)
    #expect(transport.mediaAuthenticator == nil)
  }

  @Test("S4-50: a plain import of this module shows nothing but PalbeCall and its enable()")
  func publicInterface() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Sources/SDK/PalbeCall").standardized
    var found: [String] = []
    let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
    for case let file as URL in files where file.pathExtension == "swift" {
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        // A plain import does not show what is marked so; the fuzzing package names it.
        if line.contains("@_spi(Testing)") { continue }
        // Other attributes may come first.
        let words = line.split(separator: " ").drop { $0.hasPrefix("@") }
        if words.first == "public" || words.first == "open" { found.append(words.joined(separator: " ")) }
      }
    }
    #expect(found.sorted() == ["public enum PalbeCall {", "public static func enable() {"])
  }
}

@Suite("The seam against the SFU", .serialized, .timeLimit(.minutes(1)))
struct SeamCallTests {
  @Test("S4-46, S4-47: two devices call each other through the seam alone")
  func call() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let (adaHeard, bobHeard) = (Heard(), Heard())
    let ada = SFUCallTransport(e2ee: true, devices: devices)
    let bob = SFUCallTransport(e2ee: true, devices: devices)
    try await ada.setMediaKey(key)
    try await ada.connect(
      edgeUrl: sfu.url, token: try TestSFU.token("ada#phone"), media: .audioVideo
    ) { adaHeard.hear($0) }
    try await bob.connect(
      edgeUrl: sfu.url, token: try TestSFU.token("bob#desk"), media: .audio
    ) { bobHeard.hear($0) }
    await bobHeard.wait(for: .participantConnected(identity: "ada#phone"))
    await bobHeard.wait(for: .trackSubscribed(identity: "ada#phone", kind: .video))
    #expect(adaHeard.all.contains(.connected) && bobHeard.all.contains(.connected))
    // Without a key bob sends nothing.
    #expect(!adaHeard.all.contains(.trackSubscribed(identity: "bob#desk", kind: .audio)))
    try await bob.setMediaKey(key)
    await adaHeard.wait(for: .trackSubscribed(identity: "bob#desk", kind: .audio))

    let next = Data(repeating: 9, count: 32)
    for transport in [ada, bob] { try await transport.setMediaKey(next, sending: .whenConfirmed) }
    for transport in [ada, bob] { await transport.confirmSendKey() }
    try await ada.setMediaKey(next)

    try await ada.setMicrophoneMuted(true)
    await bobHeard.wait(for: .participantUpdated(identity: "ada#phone", audioMuted: true, videoEnabled: true))
    try await ada.setCameraEnabled(false)
    await bobHeard.wait(
      for: .participantUpdated(identity: "ada#phone", audioMuted: true, videoEnabled: false))
    await #expect(throws: CallEngineError.notPublished) { try await bob.setCameraEnabled(true) }

    await ada.disconnect()
    await bobHeard.wait(for: .participantDisconnected(identity: "ada#phone"))
    await ada.disconnect()
    await bob.disconnect()
    for heard in [adaHeard, bobHeard] {
      #expect(heard.all.last == .disconnected)
      #expect(heard.all.filter { $0 == .disconnected }.count == 1)
    }
    await #expect(throws: CallEngineError.notConnected) { try await ada.setMediaKey(key) }
  }
}
