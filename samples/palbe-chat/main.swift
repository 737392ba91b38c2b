import Foundation
import PalbeMessaging

// A chat in a terminal, over what every app has: `import PalbeMessaging`. docs/chat.md tells how to use it.

setlocale(LC_ALL, "")
signal(SIGPIPE, SIG_IGN)

func complain(_ text: String) { FileHandle.standardError.write(Data("palbe-chat: \(text)\n".utf8)) }

do {
  let arguments = try Arguments(Array(CommandLine.arguments.dropFirst()))
  if arguments.isHelp {
    print(Arguments.usage, terminator: "")
    exit(0)
  }
  if arguments.isSideBySide {
    exit(try await SideBySide(arguments).run())
  }
  var script: Script?
  if let path = arguments.script {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw Misuse("cannot read '\(safe(path))'")
    }
    script = try Script(String(decoding: data, as: UTF8.self), name: path)
    if arguments.email != nil, arguments.passwordFile == nil {
      throw Misuse("a script needs --password-file")
    }
  }
  try arguments.configure()
  if let script {
    exit(await ScriptRunner(script, arguments).run())
  } else if Terminal.isInteractive {
    exit(try await Conversation.atTerminal(arguments))
  } else {
    exit(try await Conversation.overPipes(arguments))
  }
} catch let error as Misuse {
  complain(error.description)
  exit(2)
} catch {
  complain(Wording.failure(error))
  exit(1)
}
