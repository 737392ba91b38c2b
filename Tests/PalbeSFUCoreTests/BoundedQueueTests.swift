import Testing

@testable import PalbeSFUCore

struct BoundedQueueTests {
  @Test(
    "LiveKit protocol §4 (36): what waits comes out in order; beyond the limit it is dropped, and a pop makes room"
  )
  func order() {
    var queue = BoundedQueue<Int>(limit: 3)
    for number in 0..<5 { queue.append(number) }
    let first = queue.pop()
    queue.append(5)
    queue.append(6)
    var rest: [Int] = []
    while let number = queue.pop() { rest.append(number) }
    queue.append(7)
    let last = [queue.pop(), queue.pop()]
    #expect(first == 0)
    #expect(rest == [1, 2, 5])
    #expect(last == [7, nil])
  }
}
