import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// Cuts of its signaling that a client asked for, to see how it gets over them.
struct SimulatedCuts {
  /// A resume within this is cut.
  static let time = TimeDelta.seconds(5)
  /// So many resumes are cut before they are answered.
  static let silentCuts = 3

  private var answeredUntil = Instant.zero
  private var silentUntil = Instant.zero
  private var silentLeft = 0

  mutating func cutAnswered(from now: Instant) { answeredUntil = now + Self.time }

  mutating func cutSilently(from now: Instant) {
    silentUntil = now + Self.time
    silentLeft = Self.silentCuts
  }

  /// True when this resume must not be answered.
  mutating func takeSilent(at now: Instant) -> Bool {
    guard silentLeft > 0, now < silentUntil else { return false }
    silentLeft -= 1
    return true
  }

  /// True when this resume ends once it is answered.
  mutating func takeAnswered(at now: Instant) -> Bool {
    defer { answeredUntil = .zero }
    return now < answeredUntil
  }
}

/// What a client asks for in tests of its own: a fault of its own session, that nobody else can ask for.
///
/// | scenario | what happens |
/// |---|---|
/// | speaker_update | everyone is told that it speaks, for so many seconds |
/// | node_failure | its session is gone without a word, as with its node |
/// | migration | its signaling ends, as when another node takes over; there is none, and a resume finds the same session |
/// | server_leave | it must leave, as when a server ends |
/// | leave_request_full_reconnect | it must begin anew |
/// | switch_candidate_protocol | from its next offer on it gets candidates of that protocol alone; for TLS through a relay |
/// | subscriber_bandwidth | no more than these bits per second of video go to it; 0 ends that |
/// | disconnect_signal_on_resume | its next resume within 5 s is cut behind the answer, or, `no_messages`, three of them before |
extension SignalPlane {
  func simulate(_ request: LiveKit.SimulateScenario, of participant: Participant, at now: Instant) {
    guard let scenario = request.scenario else { return }
    context.log(.info, "participant asked for a fault", participant.logFields)
    switch scenario {
    case .speakerUpdate(let seconds): participant.simulateSpeech(for: .seconds(Int(seconds)), at: now)
    case .nodeFailure(true): remove(participant, .simulatedFailure, at: now)
    case .migration(true): cutSignaling(of: participant, at: now)
    case .serverLeave(true): remove(participant, .simulatedLeave, at: now)
    case .leaveRequestFullReconnect(true): remove(participant, .simulatedReconnect, at: now)
    case .switchCandidateProtocol(let wanted): participant.room.setProtocol(wanted, of: participant)
    case .subscriberBandwidth(let rate):
      participant.simulatedBandwidth = rate > 0 ? DataRate(bitsPerSecond: rate) : nil
      participant.allocate(at: now)
      participant.wake(at: now)
    case .disconnectSignalOnResume(true): participant.simulatedCuts.cutAnswered(from: now)
    case .disconnectSignalOnResumeNoMessages(true): participant.simulatedCuts.cutSilently(from: now)
    case .nodeFailure, .migration, .serverLeave, .leaveRequestFullReconnect, .disconnectSignalOnResume,
      .disconnectSignalOnResumeNoMessages:
      break
    }
  }

  /// The signaling ends without a word; what it served goes on.
  func cutSignaling(of participant: Participant, at now: Instant) {
    endSignaling(of: participant, until: now + context.configuration.resumeTimeout)
  }
}

extension Participant {
  private static let simulatedLevel: Float = 0.9

  fileprivate func simulateSpeech(for time: TimeDelta, at now: Instant) {
    guard (TimeDelta.seconds(1)...TimeDelta.seconds(60)).contains(time) else { return }
    speechLevel = Self.simulatedLevel
    isSpeechSimulated = true
    nextSpeechAt = now + time
    wake(at: nextSpeechAt)
    room.broadcastSpeech(of: self)
  }

  /// Where its transports can be reached.
  var candidates: [SocketAddress] {
    let all = context.configuration.candidates
    guard room.candidateProtocol(of: self) != .udp else { return all }
    let stream = all.filter { $0.transport == .tcp }
    return stream.isEmpty ? all : stream
  }

  /// Everything of it must go through a relay.
  var needsRelay: Bool {
    room.candidateProtocol(of: self) == .tls
      && context.iceServers(for: self).contains { $0.urls.contains { $0.hasPrefix("turn") } }
  }
}

extension Room {
  /// UDP is every protocol there is.
  fileprivate func setProtocol(_ wanted: LiveKit.CandidateProtocol, of participant: Participant) {
    candidateProtocols[participant.identity] = nil
    guard wanted == .tcp || wanted == .tls,
      candidateProtocols.count < context.configuration.maxParticipantsPerRoom
    else { return }
    candidateProtocols[participant.identity] = wanted
  }

  fileprivate func candidateProtocol(of participant: Participant) -> LiveKit.CandidateProtocol {
    candidateProtocols[participant.identity] ?? .udp
  }
}
