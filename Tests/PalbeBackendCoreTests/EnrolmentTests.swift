import PalbeBackendKit
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeBackendCore

@Suite("Enrolment and its key packages")
struct EnrolmentTests {
  private func count(_ rig: Rig<MemoryStore>, _ caller: Caller) throws -> KeyPackageCount {
    guard case .keyPackageCount(let count) = try rig.ask(.keyPackageCount, caller) else {
      throw Rig<MemoryStore>.Unexpected()
    }
    return count
  }

  @Test(
    "S0-25: an enrolment that comes again brings its key packages, each once, as many as there is room for")
  func again() throws {
    let rig = try Rig(MemoryStore())
    let user = rig.newUser()
    let anonymous = Caller(user: user, device: nil)
    var enrolment = rig.enrolment(of: user, packages: 1, lastResort: false)
    try rig.ask(.enrolDevice(enrolment), anonymous)
    let caller = Caller(user: user, device: enrolment.device)
    #expect(try count(rig, caller) == KeyPackageCount(count: 1, hasLastResort: false))
    let key = enrolment.signatureKey
    enrolment.keyPackages += (0..<4).map { _ in rig.package(key, of: caller) }
    enrolment.lastResort = rig.package(key, of: caller, isLastResort: true)
    for _ in 0..<2 {
      #expect(try rig.ask(.enrolDevice(enrolment), anonymous) == .enrolled(caller.device!))
      #expect(try count(rig, caller) == KeyPackageCount(count: 5, hasLastResort: true))
    }
    // One that was used meanwhile is not there again.
    let ben = try rig.enrol()
    try rig.ask(.claimKeyPackages(of: user), ben)
    try rig.ask(.enrolDevice(enrolment), anonymous)
    #expect(try count(rig, caller) == KeyPackageCount(count: 4, hasLastResort: true))
    enrolment.keyPackages = (0..<200).map { _ in rig.package(key, of: caller) }
    try rig.ask(.enrolDevice(enrolment), anonymous)
    #expect(try count(rig, caller).count == 200)
    enrolment.keyPackages.append(rig.package(key, of: caller))
    #expect(rig.refusal(.enrolDevice(enrolment), anonymous) == .invalidRequest(.tooMany))
    enrolment.signatureKey = [1]
    #expect(rig.refusal(.enrolDevice(enrolment), anonymous) == .invalidRequest(.identifier))
  }

  @Test("Key packages are this device's, of the suite that all use, at enrolment, again, and when published")
  func packages() throws {
    let rig = try Rig(MemoryStore())
    let (user, mallory) = (rig.newUser(), try rig.enrol())
    var enrolment = rig.enrolment(of: user)
    let key = enrolment.signatureKey
    let caller = Caller(user: user, device: enrolment.device)
    let good = rig.package(key, of: caller)
    func made(_ owner: Caller, _ suite: CipherSuite = .x25519AES128GCM) -> [UInt8] {
      Wire.keyPackage(
        initKey: rig.random.bytes(32), signatureKey: key, user: owner.user, device: owner.device!,
        notAfter: .max, cipherSuite: suite)
    }
    let bad: [([UInt8], InvalidRequest.Flaw)] = [
      (made(mallory), .keyPackageCredential),
      (made(Caller(user: user, device: mallory.device)), .keyPackageCredential),
      (made(Caller(user: mallory.user, device: caller.device)), .keyPackageCredential),
      (made(caller, .p256AES128GCM), .keyPackageSuite), ([], .keyPackageForm),
      (Array(good.dropFirst(4)), .keyPackageForm), (good + [0], .keyPackageForm),
      (Wire.welcome([1]), .keyPackageForm), (rig.package([7], of: caller), .keyPackageSignatureKey),
      (rig.package(key, of: caller, isLastResort: true), .keyPackageLastResort),
      (rig.package(key, of: caller, days: -1), .keyPackageLifetime),
    ]
    func refused(_ request: BackendRequest, _ caller: Caller, _ flaw: InvalidRequest.Flaw) {
      guard case .invalidRequest(let reason)? = rig.refusal(request, caller) else {
        Issue.record("not refused for \(flaw)")
        return
      }
      #expect(reason == .keyPackage && reason.flaw == flaw)
    }
    let anonymous = Caller(user: user, device: nil)
    func all(isEnrolled: Bool) {
      for (package, flaw) in bad {
        enrolment.keyPackages = [good, package]
        refused(.enrolDevice(enrolment), anonymous, flaw)
        if isEnrolled { refused(.publishKeyPackages([package], lastResort: nil), caller, flaw) }
      }
    }
    all(isEnrolled: false)
    enrolment.device = nil
    refused(.enrolDevice(enrolment), anonymous, .keyPackageWithoutDevice)
    enrolment.device = caller.device
    enrolment.keyPackages = []
    try rig.ask(.enrolDevice(enrolment), anonymous)
    all(isEnrolled: true)
    #expect(try count(rig, caller) == KeyPackageCount(count: 0, hasLastResort: true))
    // What somebody else has brought is not mine because I send it again.
    enrolment.keyPackages = [good]
    try rig.ask(.enrolDevice(enrolment), anonymous)
    refused(.publishKeyPackages([good], lastResort: nil), caller, .keyPackageKnown)
  }

  @Test("Every flaw of a request has a field, a sentence and a reason")
  func words() {
    for flaw in InvalidRequest.Flaw.allCases {
      #expect(!flaw.field.isEmpty && flaw.words.count > 10)
      #expect(InvalidRequest.because(flaw).reason == flaw.reason)
    }
  }
}
