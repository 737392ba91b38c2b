import Foundation
import PalbeTestKit
import Testing

@Suite("What an app that only chats links (S0-1, S0-7, S0-8)")
struct LinkMapTests {
  private func run(_ tool: String, _ arguments: [String]) throws -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: tool)
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return String(decoding: text, as: UTF8.self)
  }

  @Test("S0-8: a program over Palbe and PalbeMessaging links no codec, no media transport and no server")
  func noMedia() throws {
    let program = try #require(ToolProcess.executable("sdk-probe")).path
    let libraries = try run("/usr/bin/ldd", [program])
    #expect(libraries.contains("libcurl") && libraries.contains("libwebsockets"))
    // SQLite it does: chats are kept in it (S0-54).
    for library in ["libopus", "libvpx", "libsrtp", "libusrsctp", "libasound", "libyaml"] {
      #expect(!libraries.contains(library), "\(library)")
    }
    // Names of modules stand in the mangled names of their symbols.
    let symbols = try run("/usr/bin/nm", [program])
    #expect(symbols.contains("7Palbase") && symbols.contains("14PalbeMessaging"))
    for module in [
      "PalbeOpus", "PalbeVP8", "PalbeRTP", "PalbeSRTP", "PalbeICE", "PalbeDTLS", "PalbeFrameEncryption",
      "PalbeCallCore",
      "PalbeSFUCore", "PalbeBackendCore", "PalbeBackendServer",
    ] {
      #expect(!symbols.contains("\(module.utf8.count)\(module)"), "\(module)")
    }
  }
}
