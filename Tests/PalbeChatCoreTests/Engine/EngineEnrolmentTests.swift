import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: the device and the server")
struct EngineEnrolmentTests {
  @Test("S0-3: a crash around the enrolment enrols the same device")
  func crashes() throws {
    for moment in CrashingStorage.Moment.allCases {
      for passes in 0..<3 {
        let world = try ChatWorld(seed: 31)
        let anna = world.addPhone("anna")
        anna.storage.arm(nil, moment, passes: passes)
        world.settle()
        world.restart(anna)
        #expect(world.settle())
        anna.storage.disarm()
        #expect(world.deviceCount(of: anna.user) == 1)
        #expect(world.isEnrolled(anna))
      }
    }
  }

  @Test("Section 3 #13: key packages are replenished when welcomes have used them up")
  func replenished() throws {
    let world = try ChatWorld(seed: 32)
    let ben = world.addPhone("ben")
    world.settle()
    for number in 0..<12 {
      let guest = world.addPhone("guest\(number)")
      world.settle()
      let chat = try world.directChat(guest, with: ben.user)
      try world.send("hello \(number)", from: guest, to: chat)
      #expect(world.settle())
      world.run(for: .seconds(3))
    }
    #expect(world.settle())
    #expect(world.violations() == [])
    #expect(world.keyPackageCount(of: ben) >= 3)
  }

  @Test("2.2 device_not_enrolled: a server that forgot the device has it again, and the message goes")
  func forgotten() throws {
    let world = try ChatWorld(seed: 33)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    world.settle()
    var refusals = 0
    world.refuses = { phone, request in
      guard phone === anna, case .createGroup = request, refusals == 0 else { return nil }
      refusals += 1
      return .deviceNotEnrolled
    }
    let chat = try world.directChat(anna, with: ben.user)
    try world.send("hello", from: anna, to: chat)
    #expect(world.settle())
    let other = try #require(world.chat(ben, world.head(anna, chat)?.group))
    #expect(world.texts(ben, other) == ["hello"])
  }
}
