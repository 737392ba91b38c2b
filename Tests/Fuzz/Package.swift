// swift-tools-version: 6.2
import PackageDescription

// A nested package, so that the fuzzer's flags stay out of the main one. `make fuzz` builds it with
// `PALBE_FUZZ=1`, which makes the main package offer its inner modules as products.
let modules = [
  "PalbeUnits", "PalbeWire", "PalbeProtobuf", "PalbeCrypto", "PalbeWebTokens", "PalbeRTP", "PalbeCongestion",
  "PalbeSDP",
  "PalbeSRTP",
  "PalbeICE", "PalbeDTLS", "PalbeDataChannels", "PalbeLiveKit", "PalbeMLSMessages", "PalbeMLS",
  "PalbeFrameEncryption",
  "PalbeOpus",
  "PalbeVP8", "PalbeMediaFiles", "PalbeSFUCore", "PalbeCallCore", "PalbeWebServer", "PalbeSFUServer",
  "PalbeChatCore", "Palbase", "PalbeMessaging", "PalbeCall", "PalbeYAML",
  "PalbeBackendCore", "PalbeAccountsCore", "PalbeBackendKit", "PalbeBackendServer",
]

let package = Package(
  name: "palbe-fuzz",
  dependencies: [.package(name: "palbe", path: "../..")],
  targets: [
    .target(name: "CFuzzDriver", path: "Sources/CFuzzDriver"),
    .target(
      name: "FuzzTargets",
      dependencies: modules.map { .product(name: $0, package: "palbe") },
      path: "Targets",
      swiftSettings: [
        .swiftLanguageMode(.v6), .enableExperimentalFeature("Lifetimes"),
        .enableUpcomingFeature("MemberImportVisibility"),
      ]),
    .executableTarget(
      name: "palbe-fuzz", dependencies: ["FuzzTargets", "CFuzzDriver"], path: "Sources/palbe-fuzz",
      swiftSettings: [.swiftLanguageMode(.v6)]),
  ]
)
