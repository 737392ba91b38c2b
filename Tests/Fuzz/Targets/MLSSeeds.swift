import PalbeMLSMessages
import PalbeUnits

@testable import PalbeMLS

/// Corpus files of the MLS targets: `palbe-fuzz seeds FOLDER` writes them.
public enum MLSSeeds {
  /// Target, file name and bytes.
  public static var all: [(target: String, name: String, bytes: [UInt8])] {
    var seeds: [(target: String, name: String, bytes: [UInt8])] = []
    let programs = ["mls-malice", "mls-outsider", "mls-welcome", "mls-group-info", "mls-key-package"]
    var random = RandomSource(seed: 5)
    for target in programs {
      seeds.append((target, "genuine", [0]))
      // Each first choice once, then any.
      for first in UInt8(0)..<10 {
        seeds.append((target, "choice-\(first)", [first] + random.bytes(60)))
      }
    }
    let world = MLSWorld.shared
    seeds.append(("mls-tree", "genuine", [0] + world.mallory.ratchetTree.encoded()))
    for first in UInt8(1)..<4 {
      seeds.append(("mls-tree", "changes-\(first)", [1, first] + random.bytes(40)))
    }
    var mallory = world.mallory.copy()
    let messages: [(String, MLSMessage?)] = [
      ("key-package", world.outsidersBundle.message),
      ("group-info", try? mallory.groupInfo()),
      ("application", try? mallory.encrypt([1, 2, 3], using: &random)),
      ("commit", try? mallory.commit(at: MLSWorld.now, using: &random).commit),
    ]
    for (name, message) in messages {
      guard let message else { continue }
      seeds.append(("mls-message", name, message.encoded()))
    }
    return seeds
  }
}
