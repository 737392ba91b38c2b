import PalbeChatKit
import Testing

/// Histories that failed once, made small by `chat-simulator replay --shrink`.
@Suite("Engine: histories that failed once")
struct EngineStoryTests {
  struct Story: Sendable, CustomTestStringConvertible {
    let name: String
    let text: String
    var testDescription: String { name }
  }

  static let all: [Story] = [
    Story(
      name: "S0-106: a role asked for by who is no owner any more is not committed",
      text: """
        story 836 2 2 0 0 5 120 0
        group 947 3523 3505 0 16620494707926896709
        device 137 9531 1130 1110 173381854140710529
        reach 406 5036 3400 322 17284094149944699173
        rename 829 7670 5825 2774 12724498366814013580
        role 200 8389 6880 309 12874022058512637758
        device 479 4036 2506 0 913407462426122628
        role 393 1336 8872 0 11773361454459865237
        role 678 1114 501 374 11124023613062942771
        """),
    Story(
      name: "Section 3 #1: a founding that failed as the process ended is tried again by what waits",
      text: """
        story 457 3 5 0 0 20 20 0
        clock 627 6330 20 0 351343984910313650
        die 652 455 7514 0 6483150190056894183
        group 92 2662 9566 0 4781908540365460526
        clock 689 7963 1256 167 3877761255210465041
        """),
    Story(
      name: "2.9h: a device that went while the group was being founded is no stranger's removal",
      text: """
        story 165 2 3 150 0 5 40 0
        reach 946 1341 2358 0 5516509136489781130
        direct 222 2596 2195 0 16544861976862688620
        group 395 1307 4175 0 9075995220066890795
        role 256 548 8108 327 4211534981784771420
        edit 627 5464 641 0 4982986172168365705
        read 90 4910 6392 2769 2915860699546621866
        revoke 131 9358 5069 0 735542658243672488
        """),
    Story(
      name: "Section 3 #26: a device that was revoked keeps no secrets of an epoch that ended",
      text: """
        story 74 2 2 150 0 20 20 0
        direct 968 6923 2157 0 15456326484456154364
        reply 935 5606 1439 0 13130338973184922820
        direct 303 1073 357 0 5452999124616092744
        device 941 7767 8541 260 284351936826389186
        group 708 9844 9782 0 9449640497045527331
        scope 421 9320 7919 1534 3203396580599086473
        revoke 455 4130 1031 0 7390869165268233639
        """),
    Story(
      name: "S0-30: who does not know the name yet seals none over it",
      text: """
        story 48 3 5 0 0 20 20 0
        group 215 8490 9852 0 2163028888129103441
        reach 508 1834 1836 100 7205940553274888762
        device 350 2890 5440 1096 2318090400671847783
        """),
    Story(
      name: "S0-29: who came in while the group was renamed knows the new name",
      text: """
        story 191 2 2 0 100 20 900 0
        group 87 3773 9492 0 13715267326460595429
        device 409 8105 5297 132 11508642922043118196
        role 380 1693 7403 4665 15607495151710914070
        add 163 2363 8474 256 5766785849672877695
        rename 383 3965 6630 558 4609807646616682908
        """),
    Story(
      name: "2.9h: a socket that was up before the device was enrolled brings its queue",
      text: """
        story 183 4 4 150 0 20 20 0
        group 565 4930 1541 0 7102763869874001053
        device 486 4380 3363 390 15793031187483705181
        split 912 9663 1486 0 10931663473323801903
        """),
    Story(
      name: "Section 3 #1: leaving is told and done, or neither",
      text: """
        story 972 3 4 0 0 20 20 0
        device 392 5725 4534 0 7965480321029844022
        direct 484 7723 1126 0 1276547728181774863
        say 607 2000 4683 4098 10697156003887226653
        die 475 3859 8717 0 10227162827253882945
        say 729 274 5732 0 18408267494282622176
        say 479 7532 833 0 14024553341960613262
        leave 940 6500 5545 327 1538052676184852414
        reply 938 7208 3279 1657 10121322457912454617
        say 524 3046 2774 0 4160878771734326801
        """),
    Story(
      name: "S0-107: a device that came in while its user left is out too",
      text: """
        story 33 2 2 60 100 20 900 0
        direct 235 3366 8548 0 770359647582279541
        delete 868 7828 2871 3720 3611522243940659850
        role 989 8668 3982 0 9482239716300896574
        device 733 8787 8012 2931 7232463590645838409
        say 200 6650 282 2555 10657279232538121085
        leave 925 799 5078 0 7209100261177931561
        """),
  ]

  @Test("Issue 6: what failed once holds", arguments: all)
  func holds(_ story: Story) throws {
    var history = try ChatHistory(try #require(ChatStory(text: story.text)))
    history.checksProfiles = true
    #expect(history.run() == [], "\(story.name)")
  }
}
