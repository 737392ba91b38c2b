import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

struct SpeakerTests {
  @Test(
    "RFC 6464: a window is speech from 40 % of packets at -35 dBov on, and its level is linear",
    arguments: [
      (level: UInt8(30), loud: 20, active: true), (level: 35, loud: 8, active: true),
      (level: 35, loud: 7, active: false), (level: 36, loud: 20, active: false),
      (level: 127, loud: 20, active: false), (level: 0, loud: 8, active: true),
    ])
  func window(level: UInt8, loud: Int, active: Bool) {
    var detector = SpeechDetector()
    for _ in 0..<loud { detector.note(AudioLevel(isVoice: true, level: level)) }
    for _ in loud..<20 { detector.note(AudioLevel(isVoice: false, level: 127)) }
    let changed = detector.endWindow()
    #expect(changed == active)
    #expect(detector.isActive == active)
    #expect((0...1).contains(detector.level))
    if level == 0 { #expect(detector.level == 1) }
    // Silence ends it at once, and is told once.
    let ended = detector.endWindow()
    let again = detector.endWindow()
    #expect(ended == active && !again)
    #expect(detector.level == 0)
  }

  private func speak(_ world: World, _ client: ScriptedClient, for time: TimeDelta) throws {
    let end = world.now + time
    while world.now < end {
      client.tracks[0].timestamp &+= 960
      world.send([try client.media(0, payload: [1, 2, 3])], from: client)
      world.run(for: .milliseconds(20))
    }
  }

  private func speakers(_ client: ScriptedClient) -> [LiveKit.SpeakerInfo] {
    client.messages.flatMap { message -> [LiveKit.SpeakerInfo] in
      if case .speakersChanged(let change) = message { return change.speakers }
      return []
    }
  }

  @Test("speakers_changed: the speaker and those who hear it learn of begin and end, others of nothing")
  func changes() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let carol = try world.client("carol")
    world.join(carol, grant: { $0.canSubscribe = false })
    #expect(world.connect(carol))
    try speak(world, alice, for: .seconds(2))
    for client in [alice, bob] {
      let told = speakers(client)
      #expect(told.count == 1)
      #expect(told.last?.sid == alice.join?.participant?.sid)
      #expect(told.last?.active == true)
      #expect(told.last.map { $0.level > 0 && $0.level <= 1 } == true)
    }
    world.run(for: .seconds(1))
    for client in [alice, bob] {
      let told = speakers(client)
      #expect(told.count == 2)
      #expect(told.last?.active == false)
      #expect(told.last?.level == 0)
    }
    #expect(speakers(carol).isEmpty)
  }

  @Test("Who comes to hear somebody who speaks is told so at once")
  func lateListener() throws {
    let world = try World()
    let (alice, _) = try call(world)
    try speak(world, alice, for: .seconds(1))
    let carol = try world.client("carol")
    world.join(carol)
    let told = carol.messages.compactMap { message -> [LiveKit.SpeakerInfo]? in
      if case .speakersChanged(let change) = message { change.speakers } else { nil }
    }
    #expect(told.count == 1 && told[0].map(\.sid) == [alice.join?.participant?.sid])
    #expect(told[0].first?.active == true)
  }

  @Test("A worker that ignores audio levels tells of no speaker")
  func ignored() throws {
    let world = try World(configuration: { $0.usesAudioLevels = false })
    let (alice, bob) = try call(world)
    try speak(world, alice, for: .seconds(2))
    #expect(speakers(alice).isEmpty && speakers(bob).isEmpty)
  }

  @Test("Who is muted while speaking is no speaker any more")
  func muted() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try speak(world, alice, for: .seconds(1))
    let sid = alice.updates(of: "alice").last?.tracks.first { $0.type == .audio }?.sid ?? ""
    world.signal(
      .mute(
        .with {
          $0.sid = sid
          $0.muted = true
        }), from: alice)
    try speak(world, alice, for: .seconds(1))
    #expect(speakers(bob).last?.active == false)
  }
}
