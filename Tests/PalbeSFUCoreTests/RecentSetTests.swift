import Testing

@testable import PalbeSFUCore

struct RecentSetTests {
  @Test("What was put in last is there, up to the limit; what is taken out can come again")
  func limit() {
    var set = RecentSet<Int>(limit: 100)
    let first = [set.insert(0), set.insert(0)]
    let others = (1..<350).allSatisfy { set.insert($0) }
    #expect(first == [true, false] && others)
    #expect((0..<350).filter(set.contains) == Array(250..<350))
    set.remove(300)
    let again = [set.contains(300), set.insert(300), set.contains(300)]
    #expect(again == [false, true, true])
    for number in 400..<500 { set.insert(number) }
    #expect((0..<500).filter(set.contains) == Array(400..<500))
  }
}
