import CFuzzDriver
import FuzzTargets
import Glibc

// palbe-fuzz list | palbe-fuzz seeds FOLDER | palbe-fuzz TARGET [libFuzzer options and corpus folders…]
// A static cannot be captured by the C callback, so the chosen target is a global.
nonisolated(unsafe) var chosen: FuzzTarget?

let arguments = CommandLine.arguments
if arguments.count == 2, arguments[1] == "list" {
  for target in FuzzTarget.all { print(target.name) }
  exit(0)
}
if arguments.count == 3, arguments[1] == "seeds" {
  for seed in MLSSeeds.all {
    let path = "\(arguments[2])/\(seed.target)/\(seed.name)"
    guard let file = fopen(path, "wb") else { fatalError("cannot write \(path)") }
    fwrite(seed.bytes, 1, seed.bytes.count, file)
    fclose(file)
  }
  exit(0)
}
guard arguments.count >= 2, let target = FuzzTarget.all.first(where: { $0.name == arguments[1] }) else {
  let usage = "palbe-fuzz: expected 'list', 'seeds FOLDER' or a target's name, then libFuzzer's options\n"
  write(STDERR_FILENO, usage, usage.utf8.count)
  exit(2)
}
chosen = target

var count = CInt(arguments.count - 1)
var pointers: [UnsafeMutablePointer<CChar>?] =
  ([arguments[0]] + arguments.dropFirst(2)).map { strdup($0) } + [nil]
exit(
  pointers.withUnsafeMutableBufferPointer { buffer in
    var base: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = buffer.baseAddress
    return LLVMFuzzerRunDriver(&count, &base) { data, size in
      chosen?.run(Array(UnsafeBufferPointer(start: data, count: size)))
      return 0
    }
  })
