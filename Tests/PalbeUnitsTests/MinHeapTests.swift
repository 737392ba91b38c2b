import PalbeUnits
import Testing

@Suite("A heap") struct MinHeapTests {
  @Test("What goes in comes out once, least first, while more goes in")
  func order() {
    var random = RandomSource(seed: 4)
    var heap = MinHeap<UInt64>()
    var model: [UInt64] = []
    heap.removeFirst()
    for _ in 0..<5_000 {
      if random.next() % 5 < 3 {
        let element = random.next() % 100
        heap.insert(element)
        model.append(element)
      } else {
        let least = model.min()
        #expect(heap.first == least)
        if let place = model.firstIndex(where: { $0 == least }) { model.remove(at: place) }
        heap.removeFirst()
      }
      #expect(heap.count == model.count)
    }
    for element in model.sorted() {
      #expect(heap.first == element)
      heap.removeFirst()
    }
    #expect(heap.first == nil && heap.count == 0)
  }
}
