/// The places of a chat's confirmed rows from some place on, ascending; what lies before is still only in the
/// storage.
struct OrderIndex {
  private var places: [TranscriptPosition] = []
  /// Where `places` begins to count: the oldest are taken away one by one.
  private var head = 0
  /// All rows from here on are known.
  private(set) var floor = TranscriptPosition.highest
  /// Blocks in a row that had nothing.
  var emptyBlocks = 0

  /// True when every row is known.
  var isComplete: Bool { floor == .lowest }
  /// How many rows are known.
  var count: Int { places.count - head }
  /// The oldest known.
  var first: TranscriptPosition? { count > 0 ? places[head] : nil }

  /// The newest known row before a place.
  func last(before place: TranscriptPosition) -> TranscriptPosition? {
    let index = lowerBound(place)
    return index > head ? places[index - 1] : nil
  }

  /// The known rows behind a sequence number, ascending.
  func after(seq: Int64) -> ArraySlice<TranscriptPosition> {
    places[lowerBound(TranscriptPosition(rawValue: UInt64(max(0, seq) + 1) << 8))...]
  }

  /// A row was written. Before `floor` it is found when one gets there.
  mutating func insert(_ place: TranscriptPosition) {
    guard place >= floor else { return }
    if let last = places.last, last >= place {
      places.insert(place, at: lowerBound(place))
    } else {
      places.append(place)
    }
  }

  /// A row was erased.
  mutating func remove(_ place: TranscriptPosition) {
    guard place >= floor else { return }
    let index = lowerBound(place)
    guard index < places.count, places[index] == place else { return }
    if index == head {
      head += 1
      if head > 64, head > places.count / 2 {
        places.removeFirst(head)
        head = 0
      }
    } else {
      places.remove(at: index)
    }
  }

  /// What lies from `floor` to where one was, ascending.
  mutating func extend(with older: [TranscriptPosition], downTo floor: TranscriptPosition) {
    places.replaceSubrange(0..<head, with: older)
    head = 0
    self.floor = floor
  }

  private func lowerBound(_ place: TranscriptPosition) -> Int {
    var low = head
    var high = places.count
    while low < high {
      let middle = (low + high) / 2
      if places[middle] < place { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
