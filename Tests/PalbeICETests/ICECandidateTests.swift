import PalbeICE
import PalbeUnits
import Testing

@Suite("RFC 8839 §5.1: candidate lines")
struct ICECandidateTests {
  @Test("A browser's host candidate with its extensions")
  func host() throws {
    let line =
      "candidate:3885250869 1 udp 2122260223 192.0.2.17 51234 typ host generation 0 ufrag aB+/ network-id 1 network-cost 10"
    let candidate = try ICECandidate.parse(line)
    #expect(candidate.foundation == "3885250869")
    #expect(candidate.component == 1)
    #expect(candidate.transport == .udp)
    #expect(candidate.priority == 2_122_260_223)
    #expect(candidate.address == SocketAddress(ipv4: 192, 0, 2, 17, port: 51_234))
    #expect(candidate.kind == .host)
    #expect(candidate.usernameFragment == "aB+/")
    #expect(
      candidate.attribute == "candidate:3885250869 1 udp 2122260223 192.0.2.17 51234 typ host ufrag aB+/")
  }

  @Test("Reflexive and relayed candidates tell their base; a hidden base is skipped")
  func related() throws {
    let reflexive = try ICECandidate.parse(
      "a=candidate:1 1 UDP 1685987071 203.0.113.9 61000 typ srflx raddr 10.0.0.2 rport 51000\r\n")
    #expect(reflexive.kind == .serverReflexive)
    #expect(reflexive.relatedAddress == SocketAddress(ipv4: 10, 0, 0, 2, port: 51_000))
    let hidden = try ICECandidate.parse(
      "candidate:1 1 UDP 1685987071 2001:db8::1 61000 typ relay raddr abc.local rport 9")
    #expect(hidden.kind == .relayed)
    #expect(hidden.relatedAddress == nil)
    #expect(hidden.address.family == .ipv6)
  }

  @Test("RFC 6544 §4.5: TCP candidates are read, whatever their type")
  func tcp() throws {
    let candidate = try ICECandidate.parse(
      "candidate:1 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active generation 0")
    #expect(candidate.transport == .tcp)
    #expect(candidate.tcpType == "active")
  }

  @Test("RFC 6544 §4.2 and §4.5: a passive TCP candidate of ours, below every UDP one of its kind")
  func passive() throws {
    let address = SocketAddress(ipv4: 192, 0, 2, 1, port: 7_881)
    let stream = ICECandidate(.host, address.overTCP)
    let datagram = ICECandidate(.host, address)
    #expect(stream.attribute.hasSuffix(" tcp \(stream.priority) 192.0.2.1 7881 typ host tcptype passive"))
    #expect(try ICECandidate.parse(stream.attribute) == stream)
    #expect(stream.priority < ICECandidate.priority(.serverReflexive, localPreference: 0))
    #expect(stream.priority > ICECandidate.priority(.relayed, localPreference: .max))
    // §4.2: direction preference 4 in the upper 3 of the 16 bits.
    #expect(stream.priority >> 21 & 7 == 4)
    #expect(stream.foundation != datagram.foundation)
    #expect(stream.address != datagram.address && stream.address.host == datagram.address.host)
  }

  @Test("Round trip of every kind")
  func roundTrip() throws {
    for kind in [ICECandidate.Kind.host, .serverReflexive, .peerReflexive, .relayed] {
      for host in ["192.0.2.1", "2001:db8::2", "::"] {
        let address = try #require(SocketAddress(host: host, port: 4_000))
        let base = kind == .host ? nil : SocketAddress(ipv4: 10, 1, 2, 3, port: 7)
        let candidate = ICECandidate(kind, address, localPreference: 500, relatedAddress: base)
        #expect(try ICECandidate.parse(candidate.attribute) == candidate)
      }
    }
  }

  @Test("RFC 8445 §5.1.2.1: priorities, and host before reflexive before relayed")
  func priorities() {
    #expect(ICECandidate.priority(.host, localPreference: .max) == 2_130_706_431)
    #expect(ICECandidate.priority(.serverReflexive, localPreference: .max) == 1_694_498_815)
    #expect(ICECandidate.priority(.relayed, localPreference: .max) == 16_777_215)
  }

  @Test(
    "What is refused, and why",
    arguments: [
      ("", .malformed), ("candidate:", .malformed), ("candidate:1 1 udp 1 1.2.3.4 5 typ", .malformed),
      ("candidate:1 1 udp 1 1.2.3.4 5 type host", .malformed),
      ("candidate:é 1 udp 1 1.2.3.4 5 typ host", .invalidField(0)),
      ("candidate:1 0 udp 1 1.2.3.4 5 typ host", .invalidField(1)),
      ("candidate:1 257 udp 1 1.2.3.4 5 typ host", .invalidField(1)),
      ("candidate:1 1 sctp 1 1.2.3.4 5 typ host", .invalidField(2)),
      ("candidate:1 1 udp 4294967296 1.2.3.4 5 typ host", .invalidField(3)),
      ("candidate:1 1 udp -1 1.2.3.4 5 typ host", .invalidField(3)),
      ("candidate:1 1 udp 1 1.2.3.256 5 typ host", .invalidField(4)),
      ("candidate:1 1 udp 1 fe80::1%eth0 5 typ host", .invalidField(4)),
      ("candidate:1 1 udp 1 1.2.3.4 65536 typ host", .invalidField(5)),
      ("candidate:1 1 udp 1 1.2.3.4 5 typ guest", .invalidField(7)),
      ("candidate:1 1 udp 1 2c6d-4f.local 5 typ host", .hostName),
    ] as [(String, ICECandidateError)])
  func refused(line: String, error: ICECandidateError) {
    #expect(throws: error) { try ICECandidate.parse(line) }
  }

  @Test("Truncation: no prefix traps, and a line of a megabyte is refused unread")
  func truncation() throws {
    let line = "candidate:1 1 udp 2122260223 192.0.2.17 51234 typ srflx raddr 10.0.0.2 rport 51000"
    for count in 0..<line.count {
      let parsed = try? ICECandidate.parse(String(line.prefix(count)))
      #expect(parsed == nil || count >= "candidate:1 1 udp 2122260223 192.0.2.17 51234 typ srflx".count)
    }
    let long = line + String(repeating: " x", count: 500_000)
    #expect(throws: ICECandidateError.tooLong(count: long.utf8.count, limit: 1_024)) {
      try ICECandidate.parse(long)
    }
  }
}

@Suite("RFC 8839 §5.4: credentials")
struct ICECredentialsTests {
  @Test("Fresh credentials are long enough, allowed and different")
  func fresh() {
    var random = RandomSource(seed: 3)
    var fragments = Set<String>()
    for _ in 0..<100 {
      let fresh = ICECredentials(using: &random)
      #expect(
        ICECredentials(usernameFragment: fresh.usernameFragment, password: fresh.password) == fresh)
      fragments.insert(fresh.usernameFragment)
    }
    #expect(fragments.count == 100)
  }

  @Test("Short, long and strange credentials are refused")
  func refused() {
    let good = String(repeating: "p", count: 22)
    #expect(ICECredentials(usernameFragment: "abcd", password: good) != nil)
    #expect(ICECredentials(usernameFragment: "abc", password: good) == nil)
    #expect(ICECredentials(usernameFragment: "ab:d", password: good) == nil)
    #expect(ICECredentials(usernameFragment: "abcd", password: String(good.dropLast())) == nil)
    #expect(ICECredentials(usernameFragment: String(repeating: "u", count: 257), password: good) == nil)
  }
}
