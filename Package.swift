// swift-tools-version: 6.2
import PackageDescription

/// Every target of ours compiles in the Swift 6 language mode and treats warnings as errors.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableExperimentalFeature("Lifetimes"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// Cores also name each memory-unsafe expression with `unsafe`.
let core: [SwiftSetting] = strict + [.strictMemorySafety()]

/// The SFU's core is owned by one thread, and its objects are entered several times for each packet. Debug builds, and with
/// them all tests, check that no two accesses overlap; in release builds the checks would cost as much as the rewriting.
let packetPath: [SwiftSetting] =
  core + [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]

/// A library folder whose target is `Palbe` + its folder's name.
func library(
  _ folder: String, _ name: String, _ dependencies: [String], settings: [SwiftSetting] = core
) -> Target {
  .target(
    name: "Palbe" + name,
    dependencies: dependencies.map { .target(name: $0) },
    path: "Sources/\(folder)/\(name)",
    swiftSettings: settings)
}

/// A module map over a Debian package's headers.
func system(_ name: String) -> Target {
  .systemLibrary(name: "CPalbe" + name, path: "Sources/System/\(name)")
}

func tests(_ target: String, _ dependencies: [String], exclude: [String] = []) -> Target {
  .testTarget(
    name: target + "Tests",
    dependencies: ([target] + dependencies).map { .target(name: $0) },
    path: "Tests/\(target)Tests",
    exclude: exclude,
    swiftSettings: strict)
}

func tool(_ name: String, _ dependency: String, path: String? = nil, extra: [String] = []) -> Target {
  .executableTarget(
    name: name,
    dependencies: ([dependency] + extra).map { .target(name: $0) },
    path: path ?? "Sources/Tools/\(name)",
    swiftSettings: strict)
}

/// A public product: nothing below it shows in its interface (S0-10, S4-50).
func sdk(_ name: String, _ dependencies: [String]) -> Target {
  .target(
    name: name,
    dependencies: dependencies.map { .target(name: $0) },
    path: "Sources/SDK/\(name)",
    swiftSettings: strict + [.enableUpcomingFeature("InternalImportsByDefault")])
}

let base = ["PalbeUnits", "PalbeWire"]

let targets: [Target] = [
  // System: what Swift cannot import by itself.
  system("Linux"), system("OpenSSL"), system("Zlib"), system("Opus"), system("VPX"), system("SRTP"),
  system("WebSockets"), system("SQLite"), system("USRSCTP"), system("YAML"), system("Curl"),
  .target(name: "CPalbeMallocCounter", path: "Sources/System/MallocCounter"),
  .target(
    name: "CPalbeImages", path: "Sources/System/Images",
    linkerSettings: [.linkedLibrary("jpeg"), .linkedLibrary("png16")]),

  // Base
  library("Base", "Units", []),
  library("Base", "Wire", ["PalbeUnits"]),
  library("Base", "Protobuf", base),
  library("Base", "Crypto", base + ["CPalbeOpenSSL"]),
  library("Base", "WebTokens", base + ["PalbeCrypto"]),

  // RTC: never E2EE or Codecs.
  library("RTC", "RTP", base),
  library("RTC", "Congestion", base + ["PalbeRTP"]),
  library("RTC", "SDP", base),
  library("RTC", "SRTP", base + ["PalbeRTP", "PalbeCrypto"]),
  library("RTC", "ICE", base + ["PalbeCrypto"]),
  library("RTC", "DTLS", base + ["PalbeCrypto", "CPalbeOpenSSL"]),
  library("RTC", "DataChannels", base + ["CPalbeUSRSCTP"]),
  library("RTC", "LiveKit", base + ["PalbeProtobuf", "PalbeCrypto"]),

  // E2EE
  library("E2EE", "MLSMessages", base),
  library("E2EE", "MLS", base + ["PalbeCrypto", "PalbeMLSMessages"]),
  library("E2EE", "FrameEncryption", base + ["PalbeCrypto"]),

  // Codecs
  library("Codecs", "Opus", ["PalbeUnits", "CPalbeOpus"]),
  library("Codecs", "VP8", ["PalbeUnits", "CPalbeVPX"]),

  // Core
  library(
    "Core", "SFUCore",
    base + [
      "PalbeCrypto", "PalbeProtobuf", "PalbeRTP", "PalbeCongestion", "PalbeSDP", "PalbeSRTP", "PalbeICE",
      "PalbeDTLS", "PalbeDataChannels", "PalbeLiveKit",
    ], settings: packetPath),
  library(
    "Core", "CallCore",
    base + [
      "PalbeCrypto", "PalbeProtobuf", "PalbeRTP", "PalbeCongestion", "PalbeSDP", "PalbeSRTP", "PalbeICE",
      "PalbeDTLS", "PalbeLiveKit", "PalbeFrameEncryption",
    ]),
  library("Core", "ChatCore", base + ["PalbeProtobuf", "PalbeCrypto", "PalbeMLS", "PalbeMLSMessages"]),
  library("Core", "BackendCore", base + ["PalbeMLSMessages"]),
  library("Core", "AccountsCore", base + ["PalbeCrypto", "PalbeWebTokens", "PalbeBackendCore"]),

  // IO: no Core.
  library("IO", "EventLoop", base + ["CPalbeLinux"], settings: strict),
  library(
    "IO", "WebServer", base + ["CPalbeLinux", "CPalbeWebSockets", "PalbeEventLoop"], settings: strict),
  library("IO", "CommandLine", ["PalbeWire"], settings: strict),
  library("IO", "SQLStore", base + ["PalbeCrypto", "CPalbeSQLite"], settings: strict),
  library("IO", "MediaFiles", base, settings: strict),
  library("IO", "YAML", ["CPalbeYAML"], settings: strict),

  // Server
  library("Server", "ServerSettings", base + ["PalbeYAML", "PalbeCommandLine"], settings: strict),
  library(
    "Server", "ServerObservation", base + ["PalbeCrypto", "PalbeEventLoop", "PalbeWebServer"],
    settings: strict),
  library(
    "Server", "SFUSettings", ["PalbeUnits", "PalbeYAML", "PalbeCommandLine", "PalbeServerSettings"],
    settings: strict),
  library(
    "Server", "SFUServer",
    base + [
      "PalbeCrypto", "PalbeWebTokens", "PalbeProtobuf", "PalbeLiveKit", "PalbeDTLS", "PalbeDataChannels",
      "PalbeICE", "PalbeSFUCore", "PalbeEventLoop", "PalbeWebServer", "PalbeServerObservation", "CPalbeZlib",
      "CPalbeCurl",
    ], settings: strict),
  library(
    "Server", "BackendServer",
    base + [
      "PalbeCrypto", "PalbeWebTokens", "PalbeBackendCore", "PalbeAccountsCore", "PalbeEventLoop",
      "PalbeSQLStore", "PalbeWebServer", "PalbeCommandLine", "PalbeServerObservation", "PalbeServerSettings",
      "CPalbeLinux", "CPalbeCurl",
    ], settings: strict),

  // SDK: the public products; their names carry no further prefix.
  sdk("Palbase", base + ["PalbeCrypto", "PalbeWebServer", "CPalbeCurl"]),
  sdk("Palbe", ["Palbase"]),
  library(
    "SDK", "MLSFiles", ["PalbeCrypto", "PalbeMLS", "PalbeMLSMessages", "PalbeWire", "PalbeSQLStore"],
    settings: strict),
  sdk(
    "PalbeMessaging",
    base + [
      "Palbase", "Palbe", "PalbeCrypto", "PalbeMLS", "PalbeMLSFiles", "PalbeSQLStore", "PalbeChatCore",
      "CPalbeImages",
    ]),
  sdk(
    "PalbeCall",
    base + [
      "PalbeMessaging", "PalbeCallCore", "PalbeICE", "PalbeDTLS", "PalbeFrameEncryption", "PalbeOpus",
      "PalbeVP8", "PalbeMediaFiles", "PalbeEventLoop", "PalbeWebServer",
    ]),

  // Lab
  library(
    "Lab", "CallLab",
    base + [
      "PalbeMessaging", "PalbeCall", "PalbeCallCore", "PalbeFrameEncryption", "PalbeMLS", "PalbeMLSMessages",
      "PalbeCrypto", "PalbeMediaFiles", "PalbeEventLoop", "CPalbeLinux",
    ], settings: strict),
  library(
    "Lab", "MLSInterop",
    base + ["PalbeCrypto", "PalbeMLS", "PalbeMLSMessages", "PalbeMLSFiles", "PalbeSQLStore"],
    settings: strict),

  // Tools
  tool(
    "palbe-sfu", "PalbeSFUServer",
    extra: [
      "PalbeUnits", "PalbeCommandLine", "PalbeEventLoop", "PalbeServerSettings", "PalbeServerObservation",
      "PalbeSFUSettings", "PalbeSFUCore", "PalbeLiveKit", "PalbeProtobuf", "PalbeWire",
    ]),
  tool(
    "palbe-server", "PalbeBackendServer",
    extra: base + [
      "PalbeCommandLine", "PalbeEventLoop", "PalbeWebServer", "PalbeServerObservation", "PalbeServerSettings",
    ]),
  tool("mls-interop", "PalbeMLSInterop", extra: base),
  tool("palbe-call", "PalbeCallLab", extra: base + ["PalbeCommandLine", "PalbeEventLoop"]),
  tool(
    "palbe-bench", "PalbeFrameEncryption", path: "bench/palbe-bench",
    extra: base + [
      "PalbeCommandLine", "PalbeCrypto", "PalbeMLS", "PalbeMLSMessages", "PalbeRTP", "PalbeSRTP", "PalbeDTLS",
      "PalbeLiveKit", "PalbeProtobuf", "PalbeSFUCore", "PalbeSFUServer", "PalbeServerObservation",
      "PalbeCallCore", "PalbeEventLoop", "PalbeWebServer", "PalbeWebTokens", "PalbeSocketCalls",
      "CPalbeOpenSSL", "CPalbeLinux", "CPalbeMallocCounter", "PalbeBackendCore", "PalbeAccountsCore",
      "PalbeSQLStore", "PalbeBackendServer", "PalbeBackendKit", "PalbeServerClient", "PalbeChatClient",
      "PalbeChatCore", "PalbeMessaging", "Palbe", "Palbase",
    ]),

  // Samples: what an app can do, and no more.
  .executableTarget(
    name: "palbe-chat", dependencies: ["PalbeMessaging"], path: "samples/palbe-chat",
    exclude: ["conversation"], packageAccess: false,
    swiftSettings: strict),

  // Test support
  .target(
    name: "PalbeTestKit", dependencies: [.target(name: "PalbeUnits")], path: "Tests/Support/TestKit",
    swiftSettings: strict),
  .target(
    name: "PalbeNetSim", dependencies: [.target(name: "PalbeUnits")], path: "Tests/Support/NetSim",
    swiftSettings: strict),
  .target(
    name: "PalbeMLSSimulator",
    dependencies: (base + ["PalbeCrypto", "PalbeMLS", "PalbeMLSMessages"]).map { .target(name: $0) },
    path: "Tests/Support/MLSSimulator", swiftSettings: strict),
  tool(
    "mls-simulator", "PalbeMLSSimulator", path: "Tests/Support/mls-simulator",
    extra: ["PalbeUnits", "PalbeCommandLine", "PalbeMLSMessages"]),

  .target(
    name: "PalbeBackendKit",
    dependencies: (base + [
      "PalbeCrypto", "PalbeMLSMessages", "PalbeBackendCore", "PalbeAccountsCore",
    ]).map { .target(name: $0) },
    path: "Tests/Support/BackendKit", swiftSettings: strict),

  .target(
    name: "PalbeChatKit",
    dependencies: (base + ["PalbeCrypto", "PalbeMLS", "PalbeChatCore", "PalbeBackendCore", "PalbeBackendKit"])
      .map { .target(name: $0) },
    path: "Tests/Support/ChatKit", swiftSettings: strict),
  tool(
    "chat-simulator", "PalbeChatKit", path: "Tests/Support/chat-simulator",
    extra: ["PalbeUnits", "PalbeCommandLine"]),

  .target(
    name: "PalbeSDKKit", dependencies: (base + ["Palbase", "PalbeWebServer"]).map { .target(name: $0) },
    path: "Tests/Support/SDKKit", swiftSettings: strict),
  tool(
    "sdk-probe", "PalbeMessaging", path: "Tests/Support/sdk-probe",
    extra: base + ["Palbase", "Palbe", "PalbeMLS", "PalbeChatCore"]),
  .target(
    name: "PalbeServerClient",
    dependencies: (base + ["PalbeBackendCore", "PalbeBackendKit"])
      .map { .target(name: $0) },
    path: "Tests/Support/ServerClient", swiftSettings: strict),

  .target(
    name: "PalbeServerCampaign",
    dependencies: (base + ["PalbeServerClient", "PalbeBackendCore", "PalbeEventLoop", "PalbeTestKit"])
      .map { .target(name: $0) },
    path: "Tests/Support/ServerCampaign", swiftSettings: strict),
  tool(
    "server-campaign", "PalbeServerCampaign", path: "Tests/Support/server-campaign",
    extra: ["PalbeUnits", "PalbeCommandLine"]),
  tool(
    "trial-server", "PalbeBackendServer", path: "Tests/Support/trial-server",
    extra: [
      "PalbeUnits", "PalbeBackendCore", "PalbeBackendKit", "PalbeSQLStore",
      "PalbeWebServer",
      "PalbeServerObservation", "PalbeCommandLine", "PalbeEventLoop",
    ]),

  .target(
    name: "PalbeChatClient",
    dependencies: (base + [
      "Palbase", "Palbe", "PalbeMessaging", "PalbeChatCore", "PalbeMLS", "PalbeServerClient", "PalbeTestKit",
    ]).map { .target(name: $0) },
    path: "Tests/Support/ChatClient", swiftSettings: strict),
  .target(
    name: "PalbeChatCampaign",
    dependencies: (base + [
      "Palbase", "PalbeMessaging", "PalbeChatCore", "PalbeChatClient", "PalbeTestKit",
    ]).map { .target(name: $0) },
    path: "Tests/Support/ChatCampaign", swiftSettings: strict),
  tool(
    "chat-campaign", "PalbeChatCampaign", path: "Tests/Support/chat-campaign",
    extra: ["PalbeUnits", "PalbeCommandLine"]),

  .target(name: "CPalbeProcess", path: "Tests/Support/Process"),
  .target(
    name: "PalbeSocketCalls",
    dependencies: (base + ["PalbeCallCore", "PalbeEventLoop", "PalbeWebServer"]).map { .target(name: $0) },
    path: "Tests/Support/SocketCalls", swiftSettings: strict),
  .target(
    name: "PalbeSFUChurn",
    dependencies: (base + [
      "PalbeSocketCalls", "PalbeDTLS", "PalbeRTP", "PalbeCallCore", "PalbeFrameEncryption", "PalbeEventLoop",
      "PalbeWebServer",
      "PalbeSFUCore", "PalbeSFUServer", "PalbeServerObservation", "PalbeWebTokens", "CPalbeLinux",
      "CPalbeProcess",
      "CPalbeMallocCounter",
    ]).map { .target(name: $0) },
    path: "Tests/Support/SFUChurn", swiftSettings: strict),
  tool(
    "sfu-churn", "PalbeSFUChurn", path: "Tests/Support/sfu-churn", extra: ["PalbeUnits", "PalbeCommandLine"]),

  tests("PalbeUnits", ["PalbeTestKit"]),
  tests("PalbeWire", ["PalbeUnits", "PalbeTestKit"]),
  tests("PalbeProtobuf", base + ["PalbeTestKit"]),
  tests("PalbeCrypto", base + ["PalbeTestKit", "CPalbeMallocCounter"]),
  tests("PalbeWebTokens", base + ["PalbeCrypto", "PalbeTestKit"]),
  tests("PalbeRTP", base + ["PalbeTestKit", "CPalbeMallocCounter"]),
  tests("PalbeCongestion", base + ["PalbeRTP", "PalbeTestKit", "PalbeNetSim", "CPalbeMallocCounter"]),
  tests("PalbeSDP", base + ["PalbeTestKit"], exclude: ["Fixtures"]),
  tests(
    "PalbeSRTP", base + ["PalbeRTP", "PalbeCrypto", "PalbeTestKit", "CPalbeSRTP", "CPalbeMallocCounter"]),
  tests("PalbeICE", base + ["PalbeCrypto", "PalbeTestKit", "PalbeNetSim"]),
  tests("PalbeDTLS", base + ["PalbeCrypto", "PalbeTestKit", "PalbeNetSim", "CPalbeOpenSSL"]),
  tests("PalbeDataChannels", base + ["PalbeDTLS", "PalbeTestKit", "PalbeNetSim", "CPalbeProcess"]),
  tests(
    "PalbeLiveKit", base + ["PalbeProtobuf", "PalbeTestKit"], exclude: ["Golden", "CrossCheck"]),
  tests("PalbeMLSMessages", base + ["PalbeTestKit"], exclude: ["Golden"]),
  tests(
    "PalbeMLS",
    base + ["PalbeCrypto", "PalbeMLSMessages", "PalbeTestKit", "CPalbeOpenSSL", "CPalbeMallocCounter"],
    exclude: ["Golden"]),
  tests(
    "PalbeMLSInterop",
    base + ["PalbeMLS", "PalbeMLSMessages", "PalbeSQLStore", "PalbeTestKit", "mls-interop"]),
  tests("PalbeMLSSimulator", ["PalbeMLSMessages"]),
  tests(
    "PalbeFrameEncryption", base + ["PalbeCrypto", "PalbeTestKit", "CPalbeMallocCounter"], exclude: ["Golden"]
  ),
  tests("PalbeOpus", base + ["PalbeTestKit", "CPalbeMallocCounter"]),
  tests("PalbeVP8", base + ["PalbeTestKit", "CPalbeMallocCounter"]),
  tests(
    "PalbeSFUCore",
    base + [
      "PalbeCrypto", "PalbeProtobuf", "PalbeRTP", "PalbeSDP", "PalbeSRTP", "PalbeICE", "PalbeDTLS",
      "PalbeDataChannels", "PalbeLiveKit", "PalbeCongestion",
      "PalbeTestKit", "PalbeNetSim", "CPalbeMallocCounter", "CPalbeProcess",
    ]),
  tests(
    "PalbeCallCore",
    base + [
      "PalbeCrypto", "PalbeProtobuf", "PalbeRTP", "PalbeSDP", "PalbeSRTP", "PalbeICE", "PalbeDTLS",
      "PalbeLiveKit",
      "PalbeFrameEncryption", "PalbeSFUCore", "PalbeTestKit", "PalbeNetSim", "CPalbeMallocCounter",
    ]),
  tests("PalbeEventLoop", base + ["PalbeTestKit", "CPalbeLinux", "CPalbeMallocCounter"]),
  tests("PalbeWebServer", base + ["PalbeTestKit", "CPalbeLinux", "CPalbeWebSockets"]),
  tests("PalbeCommandLine", []),
  tests("PalbeSQLStore", base + ["PalbeCrypto", "PalbeTestKit"]),
  tests("PalbeMediaFiles", base + ["PalbeTestKit"]),
  tests("PalbeYAML", ["PalbeUnits"]),
  tests(
    "PalbeSFUSettings",
    ["PalbeUnits", "PalbeYAML", "PalbeCommandLine", "PalbeServerSettings", "PalbeTestKit"]),
  tests("PalbeServerObservation", base + ["PalbeWebServer"]),
  tests(
    "PalbeSFUServer",
    base + [
      "PalbeCrypto", "PalbeProtobuf", "PalbeDTLS", "PalbeICE", "PalbeRTP", "PalbeSDP", "PalbeLiveKit",
      "PalbeSFUCore",
      "PalbeCallCore", "PalbeFrameEncryption", "PalbeEventLoop", "PalbeWebServer", "PalbeSocketCalls",
      "PalbeServerObservation", "PalbeTestKit",
      "CPalbeLinux", "CPalbeZlib",
      "CPalbeMallocCounter",
    ]),
  tests(
    "PalbeChatCore",
    base + [
      "PalbeProtobuf", "PalbeCrypto", "PalbeMLS", "PalbeMLSMessages", "PalbeTestKit", "PalbeChatKit",
      "PalbeBackendCore",
    ],
    exclude: ["Vectors"]),
  tests("PalbeBackendCore", base + ["PalbeMLSMessages", "PalbeBackendKit"]),
  tests(
    "PalbeAccountsCore", base + ["PalbeCrypto", "PalbeWebTokens", "PalbeBackendCore", "PalbeBackendKit"]),
  tests(
    "PalbeBackendServer",
    base + [
      "PalbeCrypto", "PalbeWebTokens", "PalbeMLSMessages", "PalbeBackendCore", "PalbeAccountsCore",
      "PalbeEventLoop", "PalbeSQLStore", "PalbeWebServer", "PalbeServerObservation", "PalbeServerSettings",
      "PalbeCommandLine", "PalbeBackendKit", "PalbeServerClient", "PalbeServerCampaign", "PalbeTestKit",
      "palbe-server", "trial-server",
    ],
    exclude: ["Golden"]),
  tests(
    "Palbase",
    base + [
      "PalbeBackendCore", "PalbeCrypto", "PalbeWebServer", "PalbeSDKKit", "PalbeTestKit", "sdk-probe",
    ]),
  tests(
    "Palbe",
    base + [
      "Palbase", "PalbeBackendCore", "PalbeServerClient", "PalbeSDKKit", "PalbeTestKit", "sdk-probe",
      "palbe-server",
    ]),
  tests(
    "PalbeMessaging",
    base + [
      "Palbase", "Palbe", "PalbeCrypto", "PalbeMLS", "PalbeMLSMessages", "PalbeSQLStore", "PalbeChatCore",
      "PalbeChatClient", "PalbeChatCampaign", "PalbeSDKKit", "PalbeServerClient", "PalbeTestKit",
      "CPalbeImages", "sdk-probe", "palbe-server", "chat-campaign",
    ]),
  .testTarget(
    name: "PalbeChatSampleTests",
    dependencies: ["palbe-chat", "PalbeTestKit", "PalbeUnits"].map { .target(name: $0) },
    path: "Tests/PalbeChatSampleTests", swiftSettings: strict),
  tests(
    "PalbeCall",
    base + [
      "PalbeMessaging", "PalbeCallCore", "PalbeFrameEncryption", "PalbeEventLoop", "PalbeMediaFiles",
      "PalbeWebServer",
      "PalbeSFUServer", "PalbeServerObservation", "PalbeSFUCore", "PalbeCallLab", "PalbeTestKit",
    ]),
  tests(
    "PalbeCallLab",
    base + [
      "PalbeCall", "PalbeCallCore", "PalbeMessaging", "PalbeMediaFiles", "PalbeOpus", "PalbeVP8",
      "PalbeTestKit", "CPalbeLinux",
    ]),
]

/// Inner modules are products only for the nested fuzzing package.
let innerProducts: [Product] =
  Context.environment["PALBE_FUZZ"] == nil
  ? []
  : [
    "PalbeWire", "PalbeWebTokens", "PalbeProtobuf", "PalbeRTP", "PalbeCongestion", "PalbeSDP", "PalbeSRTP",
    "PalbeICE", "PalbeDTLS", "PalbeDataChannels", "PalbeLiveKit", "PalbeOpus", "PalbeVP8", "PalbeMediaFiles",
    "PalbeSFUCore", "PalbeCallCore", "PalbeChatCore", "PalbeWebServer", "PalbeSFUServer", "PalbeYAML",
    "PalbeBackendCore",
    "PalbeAccountsCore", "PalbeBackendKit", "PalbeBackendServer",
  ].map { .library(name: $0, targets: [$0]) }

let package = Package(
  name: "palbe",
  products: [
    .library(name: "Palbase", targets: ["Palbase"]),
    .library(name: "Palbe", targets: ["Palbe"]),
    .library(name: "PalbeMessaging", targets: ["PalbeMessaging"]),
    .library(name: "PalbeCall", targets: ["PalbeCall"]),
    .library(name: "PalbeFrameEncryption", targets: ["PalbeFrameEncryption"]),
    .library(name: "PalbeMLS", targets: ["PalbeMLS"]),
    // What the interface of PalbeMLS speaks of.
    .library(name: "PalbeMLSMessages", targets: ["PalbeMLSMessages"]),
    .library(name: "PalbeCrypto", targets: ["PalbeCrypto"]),
    .library(name: "PalbeUnits", targets: ["PalbeUnits"]),
    .executable(name: "palbe-sfu", targets: ["palbe-sfu"]),
    .executable(name: "palbe-server", targets: ["palbe-server"]),
    .executable(name: "palbe-call", targets: ["palbe-call"]),
    .executable(name: "palbe-bench", targets: ["palbe-bench"]),
    .executable(name: "palbe-chat", targets: ["palbe-chat"]),
  ] + innerProducts,
  targets: targets
)
