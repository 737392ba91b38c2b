import PalbeICE
import PalbeUnits
import Testing

@Suite("RFC 8489 §6.2.1: which address a host has outside")
struct ReflexiveAddressQueryTests {
  private let start = Instant(nanoseconds: 1_000_000_000)
  private let servers = [
    SocketAddress(ipv4: 198, 51, 100, 1, port: 3_478), SocketAddress(ipv4: 198, 51, 100, 2, port: 19_302),
  ]
  private let outside = SocketAddress(ipv4: 203, 0, 113, 7, port: 40_000)

  private func answer(_ request: [UInt8], _ mapped: SocketAddress?) throws -> [UInt8] {
    var response = STUNMessage(.success, transactionID: try STUNMessage.parse(request).transactionID)
    response.mappedAddress = mapped
    return response.encoded()
  }

  private func asking() -> ReflexiveAddressQuery {
    ReflexiveAddressQuery(servers: servers, random: RandomSource(seed: 3), at: start)
  }

  @Test("The first answer counts")
  func found() throws {
    var query = asking()
    let sent = query.pollTransmit()
    let transmit = try #require(sent)
    let server = transmit.server
    let request = transmit.bytes
    #expect(server == servers[0])
    let next = query.pollTransmit()
    #expect(next?.server == nil)
    query.handle(try answer(request, outside), from: server)
    #expect(query.state == .found(outside))
    #expect(query.nextDeadline == nil)
  }

  @Test("A silent server is asked again, the next one 250 ms later; after 5 s nobody is left to ask")
  func silence() throws {
    var query = asking()
    var sent: [SocketAddress: [Int64]] = [:]
    var now = start
    while query.state == .asking {
      while let transmit = query.pollTransmit() {
        sent[transmit.server, default: []].append((now - start).nanoseconds / 1_000_000)
      }
      now = try #require(query.nextDeadline)
      query.handleTimeout(at: now)
    }
    #expect(query.state == .failed)
    #expect(now == start + .seconds(5))
    #expect(sent[servers[0]] == [0, 500, 1_500, 3_500])
    #expect(sent[servers[1]] == [250, 750, 1_750, 3_750])
  }

  @Test("What is no answer to a request, from where it went, is passed over")
  func forged() throws {
    var query = asking()
    let sent = query.pollTransmit()
    let transmit = try #require(sent)
    let server = transmit.server
    let request = transmit.bytes
    let right = try answer(request, outside)
    query.handle(right, from: SocketAddress(ipv4: 198, 51, 100, 9, port: 3_478))
    query.handle(right, from: servers[1])
    query.handle(try answer(request, nil), from: server)
    var other = STUNMessage(.success, transactionID: STUNTransactionID(high: 1, low: 2))
    other.mappedAddress = outside
    query.handle(other.encoded(), from: server)
    query.handle(request, from: server)
    for length in right.indices { query.handle(Array(right[..<length]), from: server) }
    query.handle(try answer(request, SocketAddress(ipv4: 0, 0, 0, 0, port: 9)), from: server)
    #expect(query.state == .asking)
    query.handle(right, from: server)
    #expect(query.state == .found(outside))
  }

  @Test("Without servers the query has failed; of many, eight are asked")
  func bounds() {
    var none = ReflexiveAddressQuery(servers: [], random: RandomSource(seed: 1), at: start)
    let sent = none.pollTransmit()
    #expect(none.state == .failed && none.nextDeadline == nil && sent?.server == nil)
    var servers: [SocketAddress] = []
    for host in UInt8(0)..<100 { servers.append(SocketAddress(ipv4: 198, 51, 100, host, port: 1)) }
    var many = ReflexiveAddressQuery(servers: servers, random: RandomSource(seed: 1), at: start)
    var asked: Set<SocketAddress> = []
    while let deadline = many.nextDeadline {
      while let transmit = many.pollTransmit() { asked.insert(transmit.server) }
      many.handleTimeout(at: deadline)
    }
    #expect(asked.count == 8)
  }
}
