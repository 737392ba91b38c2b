// The MLS engine over standard input and output: one JSON object a line in, one out, until the input ends.
// `--storage FILE` keeps clients and groups in a file, from which `load` takes them in a later run.
import Foundation
import PalbeMLSInterop
import PalbeUnits

let random = RandomSource {
  var system = SystemRandomNumberGenerator()
  return system.next()
}
var storage: String?
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
  if argument == "--storage", let path = arguments.popFirst() {
    storage = path
  } else {
    FileHandle.standardError.write(Data("usage: mls-interop [--storage FILE]\n".utf8))
    exit(2)
  }
}
let session = InteropSession(random: random, storage: storage) {
  UInt64(max(0, Date().timeIntervalSince1970))
}
while let line = readLine() {
  FileHandle.standardOutput.write(Data((session.answer(line) + "\n").utf8))
}
