import Testing

@testable import PalbeUnits

@Suite("Token buckets by address (issue 4, Defence)")
struct AddressRateLimiterTests {
  private func ipv4(_ number: Int) -> SocketAddress {
    SocketAddress(ipv4: 10, UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255), port: 1)
  }

  private func take(
    _ address: SocketAddress, _ limiter: inout AddressRateLimiter, at now: Instant
  ) -> Bool { limiter.take(from: address, at: now) }

  private func allowed(_ count: Int, _ limiter: inout AddressRateLimiter, at now: Instant) -> Int {
    var allowed = 0
    for _ in 0..<count where limiter.take(from: ipv4(1), at: now) { allowed += 1 }
    return allowed
  }

  @Test("A burst, then as many as come back")
  func rate() {
    var limiter = AddressRateLimiter(perSecond: 10, burst: 5, seed: 1)
    var now = Instant.zero + .seconds(1)
    #expect(allowed(8, &limiter, at: now) == 5)
    #expect(take(ipv4(2), &limiter, at: now) == true, "another address is not held up")
    now += .milliseconds(100)
    #expect(take(ipv4(1), &limiter, at: now) == true)
    #expect(take(ipv4(1), &limiter, at: now) == false)
    now += .seconds(3_600)
    #expect(allowed(8, &limiter, at: now) == 5)
  }

  @Test("Another rate counts from then on: what was saved stays as far as it fits")
  func setRate() {
    var limiter = AddressRateLimiter(perSecond: 1, burst: 10, seed: 1)
    var now = Instant.zero + .seconds(1)
    #expect(allowed(20, &limiter, at: now) == 10)
    limiter.setRate(perSecond: 100, burst: 50)
    #expect(allowed(1, &limiter, at: now) == 0)
    now += .milliseconds(100)
    #expect(allowed(20, &limiter, at: now) == 10)
    now += .seconds(10)
    limiter.setRate(perSecond: 100, burst: 2)
    #expect(allowed(20, &limiter, at: now) == 2)
  }

  @Test("The port counts for nothing, and of IPv6 the network of 64 bits")
  func identity() {
    var limiter = AddressRateLimiter(perSecond: 1, burst: 1, seed: 2)
    var other = ipv4(1)
    other.port = 2
    #expect(take(ipv4(1), &limiter, at: .zero) == true)
    #expect(take(other, &limiter, at: .zero) == false)
    #expect(take(SocketAddress(ipv6High: 7, low: 1, port: 1), &limiter, at: .zero) == true)
    #expect(take(SocketAddress(ipv6High: 7, low: 2, port: 1), &limiter, at: .zero) == false)
    #expect(take(SocketAddress(ipv6High: 8, low: 1, port: 1), &limiter, at: .zero) == true)
  }

  @Test("A full table stays bounded: newcomers inherit, and who is limited stays limited")
  func full() {
    var limiter = AddressRateLimiter(perSecond: 1, burst: 4, seed: 3, placeCount: 16)
    var allowed = 0
    for round in 0..<4 {
      for number in 0..<1_000 where limiter.take(from: ipv4(number + round * 1_000), at: .zero) {
        allowed += 1
      }
    }
    #expect(allowed == 64)
    #expect(take(ipv4(5), &limiter, at: .zero) == false)
  }

  @Test("A clock that jumps harms nobody", arguments: [Instant.distantFuture, Instant(nanoseconds: .min)])
  func jumps(_ later: Instant) {
    var limiter = AddressRateLimiter(perSecond: 1_000_000, burst: 1_000_000, seed: 4)
    #expect(take(ipv4(1), &limiter, at: .zero) == true)
    #expect(take(ipv4(1), &limiter, at: later) == true)
    #expect(take(ipv4(1), &limiter, at: .zero) == true)
  }
}
