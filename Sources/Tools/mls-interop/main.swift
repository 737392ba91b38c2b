// The MLS engine over standard input and output: one JSON object a line in, one out, until the input ends.
import Foundation
import PalbeMLSInterop
import PalbeUnits

let random = RandomSource {
  var system = SystemRandomNumberGenerator()
  return system.next()
}
let session = InteropSession(random: random) { UInt64(max(0, Date().timeIntervalSince1970)) }
while let line = readLine() {
  FileHandle.standardOutput.write(Data((session.answer(line) + "\n").utf8))
}
