import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeChatCore
@testable import PalbeMessaging

@MainActor @Suite("The window of a transcript")
struct TranscriptWindowTests {
  private let rig: ModelRig
  private let maker: MessageMaker

  init() throws {
    rig = try ModelRig()
    let snapshot = rig.snapshot()
    maker = try #require(try rig.chat(snapshot).maker)
  }

  private func texts(_ window: TranscriptWindow) -> [String] { window.messages.map { $0.text ?? "" } }

  @Test(
    "S0-48: confirmed rows stand by serverSeq, each once, what is pending behind them in the order it was made"
  )
  func order() {
    var window = TranscriptWindow()
    let rows = [rig.row("b", seq: 2), rig.row("p"), rig.row("d", seq: 4), rig.row("a", seq: 1), rig.row("q")]
    for row in rows { _ = window.insert(row) { maker.message($0) } }
    for row in rows { _ = window.insert(row) { maker.message($0) } }
    #expect(texts(window) == ["a", "b", "d", "p", "q"])
    #expect(window.messages.map(\.serverSeq) == [1, 2, 4, .max, .max])
  }

  @Test("S3-17: a row that is confirmed keeps its id and moves to its place; nothing doubles")
  func confirmed() {
    var window = TranscriptWindow()
    var mine = rig.row("mine")
    let other = rig.row("other")
    for row in [rig.row("a", seq: 1), mine, other] { _ = window.insert(row) { maker.message($0) } }
    mine.position = TranscriptPosition(seq: 2)
    mine.delivery = .sent
    #expect(window.update(mine) { maker.message($0) })
    #expect(texts(window) == ["a", "mine", "other"])
    #expect(window.messages[1].id == mine.id.text && window.messages[1].delivery == .sent)
    #expect(window.messages[1].serverSeq == 2 && window.messages[2].delivery == .pending)
    // What failed stays where it stood.
    var failed = other
    failed.delivery = .failed(code: "forbidden")
    #expect(window.update(failed) { maker.message($0) })
    #expect(window.messages[2].delivery == .failed(.forbidden))
  }

  @Test(
    "S0-53, S3-22, S3-23: the window holds what it is allowed to, live and paged alike, and pages from where it begins"
  )
  func trimmed() {
    var window = TranscriptWindow(limit: 100)
    for seq in 1...999 as ClosedRange<Int64> {
      _ = window.insert(rig.row("\(seq)", seq: seq)) { maker.message($0) }
    }
    _ = window.insert(rig.row("pending")) { maker.message($0) }
    #expect(window.messages.count == 101 && texts(window).first == "900" && texts(window).last == "pending")
    #expect(window.earlier?.seq == 900)
    // What is older than the window waits to be paged in.
    #expect(!window.insert(rig.row("old", seq: 5)) { maker.message($0) })
    let page = TranscriptPage(
      rows: (850..<900 as Range<Int64>).map { rig.row("\($0)", seq: $0) },
      earlier: TranscriptPosition(seq: 850))
    #expect(window.merge(page) { maker.message($0) } == 50)
    #expect(window.merge(page) { maker.message($0) } == 0)
    // What was paged in does not go again at once.
    _ = window.insert(rig.row("1000", seq: 1_000)) { maker.message($0) }
    #expect(window.messages.count == 151 && texts(window).first == "851")
  }

  @Test("S0-48: any history of changes gives what a list that is sorted each time gives", arguments: 0..<20)
  func history(seed: UInt64) {
    var random = RandomSource(seed: seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(max(1, count))) }
    var window = TranscriptWindow()
    var confirmed: [Row] = []
    var pending: [Row] = []
    var seq: Int64 = 0
    for step in 0..<400 {
      switch pick(6) {
      case 0, 1:
        seq += Int64(1 + pick(3))
        let row = rig.row("\(step)", seq: seq)
        confirmed.append(row)
        _ = window.insert(row) { maker.message($0) }
      case 2:
        let row = rig.row("\(step)")
        pending.append(row)
        _ = window.insert(row) { maker.message($0) }
      case 3 where !pending.isEmpty:
        seq += 1
        var row = pending.remove(at: pick(pending.count))
        row.position = TranscriptPosition(seq: seq)
        confirmed.append(row)
        _ = window.update(row) { maker.message($0) }
      case 4 where !confirmed.isEmpty:
        let place = pick(confirmed.count)
        confirmed[place].text = "edited \(step)"
        _ = window.update(confirmed[place]) { maker.message($0) }
      case 5 where !confirmed.isEmpty && pick(2) == 0:
        window.remove(confirmed.remove(at: pick(confirmed.count)).id)
      case 5 where !pending.isEmpty:
        window.remove(pending.remove(at: pick(pending.count)).id)
      default: break
      }
      guard step % 20 == 0 || step > 390 else { continue }
      let wanted = confirmed.sorted { $0.position! < $1.position! } + pending
      #expect(window.messages.map(\.id) == wanted.map(\.id.text))
      #expect(window.messages.map(\.text) == wanted.map(\.text))
    }
  }

  @Test("S0-61: who answers a message is known, and forgotten with the answer")
  func answers() {
    var window = TranscriptWindow()
    let parent = rig.row("parent", seq: 1)
    var answer = rig.row("answer", seq: 2)
    answer.reply = PalbeChatCore.ResolvedReply(
      parent: parent.id, state: .resolved, quoteSender: rig.me, quoteKind: "text", quoteText: "parent")
    _ = window.insert(answer) { maker.message($0) }
    #expect(window.answers(to: parent.id) == [answer.id])
    window.remove(answer.id)
    #expect(window.answers(to: parent.id).isEmpty)
    // Trimmed ones are forgotten too.
    window = TranscriptWindow(limit: 1)
    _ = window.insert(answer) { maker.message($0) }
    _ = window.insert(rig.row("later", seq: 3)) { maker.message($0) }
    #expect(window.answers(to: parent.id).isEmpty && !window.contains(answer.id))
  }
}
