import Foundation
import Testing

@testable import PalbeMessaging

private final class SilentTransport: CallMediaTransport {
  let e2ee: Bool
  init(e2ee: Bool) { self.e2ee = e2ee }
  func connect(
    edgeUrl: String, token: String, media: CallMedia,
    onEvent: @escaping @Sendable (CallMediaEvent) -> Void
  ) async throws { onEvent(.connected) }
  func setMicrophoneMuted(_ muted: Bool) async throws {}
  func setCameraEnabled(_ enabled: Bool) async throws {}
  func setMediaKey(_ key: Data) async throws {}
  func disconnect() async {}
}

@Test("S4-45, S4-49: the registry starts empty, a factory makes transports, reset empties it")
func registryHoldsOneFactory() throws {
  let registry = CallMediaRegistry()
  #expect(!registry.isMediaAvailable)
  #expect(registry.makeTransport(e2ee: true) == nil)
  registry.register { SilentTransport(e2ee: $0) }
  #expect(registry.isMediaAvailable)
  let transport = try #require(registry.makeTransport(e2ee: false) as? SilentTransport)
  #expect(!transport.e2ee)
  registry.reset()
  #expect(!registry.isMediaAvailable)
}

@Test("S4-46, S4-47: a transport written against the public seam reports events")
func seamCarriesEvents() async throws {
  let transport: any CallMediaTransport = SilentTransport(e2ee: true)
  let (events, continuation) = AsyncStream.makeStream(of: CallMediaEvent.self)
  try await transport.connect(edgeUrl: "ws://127.0.0.1:7880", token: "t", media: .audio) {
    continuation.yield($0)
  }
  var iterator = events.makeAsyncIterator()
  #expect(await iterator.next() == .connected)
}

@Test("S4-48: track kinds are spelled as on the wire; only audioVideo publishes video")
func kindsAndMedia() {
  #expect(CallTrackKind.audio.rawValue == "audio")
  #expect(CallTrackKind.video.rawValue == "video")
  #expect(CallMedia.audioVideo.publishesVideo)
  #expect(!CallMedia.audio.publishesVideo)
}
