import PalbeICE
import PalbeUnits

/// A client of a lite agent that checks, and answers checks, when a test says so.
struct LitePeer {
  var random: RandomSource
  var credentials: ICECredentials

  init(seed: UInt64) {
    random = RandomSource(seed: seed)
    credentials = ICECredentials(using: &random)
  }

  /// An agent that knows this peer.
  mutating func agent() -> ICELiteAgent {
    var agent = ICELiteAgent(local: ICECredentials(using: &random))
    agent.setRemote(credentials)
    return agent
  }

  mutating func check(
    _ agent: ICELiteAgent, nominates: Bool = false, role: STUNMessage.Role = .controlling(tieBreaker: 5),
    password: String? = nil
  ) -> [UInt8] {
    var request = STUNMessage(.request, transactionID: STUNTransactionID(using: &random))
    request.username = Array("\(agent.local.usernameFragment):\(credentials.usernameFragment)".utf8)
    request.priority = 1
    request.role = role
    request.useCandidate = nominates
    return request.encoded(integrityKey: Array((password ?? agent.local.password).utf8))
  }

  /// A success response to a check of the agent's.
  func answer(to check: [UInt8], password: String? = nil) throws -> [UInt8] {
    let request = try STUNMessage.parse(check)
    var response = STUNMessage(.success, transactionID: request.transactionID)
    response.mappedAddress = SocketAddress(ipv4: 192, 0, 2, 10, port: 7_882)
    return response.encoded(integrityKey: Array((password ?? credentials.password).utf8))
  }

  /// Answers the agent's checks of `address`; the rest is lost.
  mutating func prove(_ agent: inout ICELiteAgent, at address: SocketAddress, _ now: Instant) throws {
    for check in agent.checks(at: now, using: &random) where check.to == address {
      _ = agent.handle(try answer(to: check.bytes), from: address, at: now)
    }
  }

  /// Checks from `address`, where it really is.
  mutating func connect(
    _ agent: inout ICELiteAgent, nominates: Bool = false, from address: SocketAddress, at now: Instant
  ) throws {
    _ = agent.handle(check(agent, nominates: nominates), from: address, at: now)
    try prove(&agent, at: address, now)
  }
}
