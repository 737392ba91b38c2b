import PalbeMLS
import PalbeMLSMessages

/// The delivery service: blind, it sees an epoch and bytes. The first commit of an epoch wins.
struct SimulatedServer {
  /// The epoch that its commits lead to.
  private(set) var epoch: UInt64 = 0
  /// The winner of each epoch, by message number.
  private(set) var commits: [Int] = []
  private var proposals: [UInt64: [Int]] = [:]
  /// What was published last for joining from outside.
  var groupInfo: (epoch: UInt64, message: MLSMessage, ratchetTree: RatchetTreeExtension?)?

  enum Answer {
    case accepted
    /// It won before: this is the same commit again.
    case acceptedBefore
    case refused
  }

  mutating func submit(_ commit: SentMessage) -> Answer {
    if commit.epoch < epoch, commits[Int(commit.epoch)] == commit.number { return .acceptedBefore }
    guard commit.epoch == epoch else { return .refused }
    commits.append(commit.number)
    epoch += 1
    return .accepted
  }

  /// False for one whose epoch is over.
  mutating func submit(proposal: SentMessage) -> Bool {
    guard proposal.epoch == epoch else { return false }
    proposals[epoch, default: []].append(proposal.number)
    return true
  }

  func proposals(of epoch: UInt64) -> [Int] { proposals[epoch] ?? [] }
}
