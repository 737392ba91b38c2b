import PalbeUnits

/// Shares what a subscriber's link carries among the videos it watches.
///
/// ## Overview
///
///     1. every video its lowest layer, the speaker first, then by priority, then in the order of subscription;
///        those for which it does not reach are paused, and then nobody gets more than the lowest
///     2. the speaker as much as fits
///     3. the others one step each, again and again
///
/// Down at once, when the sum no longer fits. Up only with a margin, after the estimate has allowed it for `hold`, and no
/// sooner than `calm` after the same video's last change; while the estimate still climbs, for another `hold` at most, one step
/// to where it gets is awaited in place of two. An up-switch that did not last doubles a pause for all,
/// from `calm` up to `longestPause`; an estimate half as high again ends it. A video that is new, that was asked for
/// in another quality, or that was not sent, is not held back.
///
/// ## Function
///
///     allocator.update(track, for: 7, at: now)                     // when anything of it changes
///     allocator.allocate(estimate - sound, at: now)                // on each report, at least twice a second
///     while let change = allocator.pollChange() { … }              // layer nil: pause
///     estimator.setDesired(allocator.desired, at: now)
///
/// The same calls give the same result. Allocating allocates nothing once its tracks are known.
public struct LayerAllocator: Sendable {
  /// What the allocator knows of a video.
  public struct Track: Sendable {
    /// What its layers cost now. Layers that the publisher was asked not to send cost what they are expected to.
    public var rates: LayerRates
    /// The highest layer that the subscriber wants.
    public var maximum: VideoLayer
    /// 1 is the most important; 0, unset, comes after all (UpdateTrackSettings.priority).
    public var priority: UInt32
    /// Its publisher is the active speaker.
    public var isSpeaking: Bool
    /// False where the subscriber never wants a pause: then the lowest layer is sent even if it does not fit.
    public var canPause: Bool

    /// A video that is wanted in full.
    public init(
      rates: LayerRates, maximum: VideoLayer = .highest, priority: UInt32 = 0, isSpeaking: Bool = false,
      canPause: Bool = true
    ) {
      self.rates = rates
      self.maximum = maximum
      self.priority = priority
      self.isSpeaking = isSpeaking
      self.canPause = canPause
    }
  }

  /// A video's new layer.
  public struct Change: Hashable, Sendable {
    /// Which video.
    public var id: Int
    /// Its layer; nil: paused, or not sent.
    public var layer: VideoLayer?

    /// From its fields.
    public init(id: Int, layer: VideoLayer?) {
      self.id = id
      self.layer = layer
    }
  }

  /// How cautious the allocator is.
  public struct Caution: Hashable, Sendable {
    /// The part of the estimate, in percent, that an up-switch may fill.
    public var fill: Int
    /// How long the estimate must have allowed an up-switch; its lowest value of that time counts.
    public var hold: TimeDelta
    /// Time between two changes of a video.
    public var calm: TimeDelta
    /// An up-switch undone within this time has failed.
    public var trial: TimeDelta
    /// The longest pause after failed up-switches.
    public var longestPause: TimeDelta

    /// Values for a call.
    public init(
      fill: Int = 87, hold: TimeDelta = .seconds(4), calm: TimeDelta = .seconds(10),
      trial: TimeDelta = .seconds(10),
      longestPause: TimeDelta = .seconds(80)
    ) {
      self.fill = min(max(fill, 10), 100)
      self.hold = min(max(hold, .milliseconds(100)), .seconds(60))
      self.calm = calm
      self.trial = trial
      self.longestPause = longestPause
    }
  }

  struct Entry: Sendable {
    let id: Int
    var track: Track
    var ladder: LayerLadder
    /// The step of the ladder in use; -1: none.
    var current = -1
    /// The layer in use, to find its step again when rates change.
    var layer: VideoLayer?
    /// The step that a fresh allocation would give.
    var ideal = -1
    var changedAt: Instant?
    var wentUpAt: Instant?
    /// Not held back until then.
    var freeUntil: Instant
    /// What the caller was told; nil: nothing.
    var told: VideoLayer??
  }

  let caution: Caution
  var entries: [Entry] = []
  /// Indices of entries, the most important first.
  var order: [Int] = []
  private var pause: TimeDelta
  private var blockedUntil = Instant(nanoseconds: .min)
  private var blockedAt: Int64 = 0
  /// The estimate that allowed the last up-switch.
  private var triedAt: Int64 = 0
  private var recent: WindowedMinimum
  /// Until when an up-switch waits for an estimate that climbs; nil: none waits.
  private var climbUntil: Instant?

  /// An allocator without tracks.
  public init(caution: Caution = Caution()) {
    self.caution = caution
    pause = caution.calm
    recent = WindowedMinimum(spans: 8, of: caution.hold / 8)
  }

  /// Time that a new or changed video is not held back.
  private static let youth = TimeDelta.seconds(5)

  /// Adds a video, or changes what is known of it.
  public mutating func update(_ track: Track, for id: Int, at now: Instant) {
    let ladder = LayerLadder(track.rates, maximum: track.maximum)
    guard let index = index(of: id) else {
      entries.append(Entry(id: id, track: track, ladder: ladder, freeUntil: now + Self.youth))
      order.append(entries.count - 1)
      sort()
      return
    }
    let old = entries[index].track
    let wasEmpty = entries[index].ladder.count == 0
    entries[index].track = track
    entries[index].ladder = ladder
    if old.maximum != track.maximum || wasEmpty { entries[index].freeUntil = now + Self.youth }
    if ladder.count == 0 {
      entries[index].current = -1
      entries[index].layer = nil
    } else if let layer = entries[index].layer {
      entries[index].current = ladder.index(notAbove: layer)
      entries[index].layer = ladder[entries[index].current].layer
    }
    if old.priority != track.priority || old.isSpeaking != track.isSpeaking { sort() }
  }

  /// Forgets a video.
  public mutating func remove(_ id: Int) {
    guard let index = index(of: id) else { return }
    entries.remove(at: index)
    order.removeAll(keepingCapacity: true)
    for index in entries.indices { order.append(index) }
    sort()
  }

  /// The estimate that would give all videos the quality that the subscriber wants, the margin included.
  public var desired: DataRate {
    var sum: Int64 = 0
    for index in entries.indices { sum += entries[index].ladder.rate(entries[index].ladder.count - 1) }
    return DataRate(bitsPerSecond: sum / Int64(caution.fill) * 100 + sum / 50)
  }

  /// What the chosen layers take.
  public var allocated: DataRate { DataRate(bitsPerSecond: sum) }

  /// A video's layer; nil: paused, unknown or not sent.
  public func layer(of id: Int) -> VideoLayer? {
    guard let index = index(of: id) else { return nil }
    return entries[index].layer
  }

  /// True when a video is sent by its publisher and does not fit.
  public func isPaused(_ id: Int) -> Bool {
    guard let index = index(of: id) else { return false }
    return entries[index].ladder.count > 0 && entries[index].current < 0
  }

  // A loop over indices, here and below: without optimisation closures and iterators allocate.
  private func index(of id: Int) -> Int? {
    for index in entries.indices where entries[index].id == id { return index }
    return nil
  }

  /// The next video whose layer changed since the last call.
  public mutating func pollChange() -> Change? {
    for index in entries.indices where entries[index].told != .some(entries[index].layer) {
      entries[index].told = .some(entries[index].layer)
      return Change(id: entries[index].id, layer: entries[index].layer)
    }
    return nil
  }

  /// Chooses layers for an estimate, from which what is sent besides video has been taken.
  public mutating func allocate(_ estimate: DataRate, at now: Instant) {
    let budget = min(max(estimate.bitsPerSecond, 0), 100_000_000_000)
    if blockedAt > 0, budget > blockedAt / 2 * 3 { unblock() }
    if sum > budget { goDown(budget, at: now) }
    recent.add(Double(budget), at: now)
    let fill = Int64(caution.fill)
    let present = budget * fill / 100
    goUp(present, freeOnly: true, at: now)
    goUp(Int64(recent.value ?? 0) * fill / 100, of: present, freeOnly: false, at: now)
  }

  // MARK: - Down

  private mutating func goDown(_ budget: Int64, at now: Instant) {
    fill(budget)
    // Of what a fresh allocation gives, nobody takes more than he has; what that leaves over goes to those who would
    // otherwise lose, so that few videos change.
    var left = budget
    var isAnyPaused = false
    for position in order.indices {
      let index = order[position]
      guard entries[index].ladder.count > 0 else { continue }
      if entries[index].current < 0 || entries[index].ideal < 0 { isAnyPaused = true }
      entries[index].ideal = min(entries[index].ideal, entries[index].current)
      left -= entries[index].ladder.rate(entries[index].ideal)
    }
    if !isAnyPaused {
      for position in order.indices {
        let index = order[position]
        var step = entries[index].current
        let ideal = entries[index].ideal
        while step > ideal, entries[index].ladder.rate(step) - entries[index].ladder.rate(ideal) > left {
          step -= 1
        }
        guard step > ideal else { continue }
        left -= entries[index].ladder.rate(step) - entries[index].ladder.rate(ideal)
        entries[index].ideal = step
      }
    }
    var hasFailed = false
    for position in order.indices {
      let index = order[position]
      guard entries[index].ideal < entries[index].current else { continue }
      if let up = entries[index].wentUpAt, now - up < caution.trial { hasFailed = true }
      set(index, to: entries[index].ideal, at: now)
      entries[index].freeUntil = min(entries[index].freeUntil, now)
    }
    if hasFailed {
      blockedUntil = now + pause
      blockedAt = max(triedAt, budget)
      pause = min(pause + pause, caution.longestPause)
    }
  }

  private mutating func unblock() {
    blockedUntil = Instant(nanoseconds: .min)
    blockedAt = 0
    pause = caution.calm
  }

  // MARK: - Up

  private mutating func goUp(_ usable: Int64, of present: Int64 = 0, freeOnly: Bool, at now: Instant) {
    if blockedAt > 0, now > blockedUntil + pause + pause { unblock() }
    fill(usable)
    var wantsMore = false
    for position in order.indices {
      let index = order[position]
      guard entries[index].ideal > entries[index].current else { continue }
      if !freeOnly || isFree(index, mayRise: false, at: now) { wantsMore = true }
    }
    guard wantsMore else {
      if !freeOnly { climbUntil = nil }
      return
    }
    let mayRise = !freeOnly && now >= blockedUntil
    if mayRise, isClimbing(from: usable, to: present, at: now) { return }
    makeRoom(usable, mayRise: mayRise, at: now)
    var left = usable - sum
    for position in order.indices {
      let index = order[position]
      guard entries[index].ideal > entries[index].current else { continue }
      guard isFree(index, mayRise: mayRise, at: now) else { continue }
      let ladder = entries[index].ladder
      let current = entries[index].current
      var step = entries[index].ideal
      // What cannot be paused may take its lowest layer whatever fits.
      let isForced = current < 0 && !entries[index].track.canPause
      while step > current, ladder.rate(step) - ladder.rate(current) > left, !(isForced && step == 0) {
        step -= 1
      }
      guard step > current else { continue }
      left -= ladder.rate(step) - ladder.rate(current)
      set(index, to: step, at: now)
      if current >= 0 { entries[index].wentUpAt = now }
      triedAt = usable / Int64(caution.fill) * 100
    }
  }

  /// True while it is worth waiting for what the estimate climbs to. A video of which nothing is sent does not wait.
  private mutating func isClimbing(from usable: Int64, to present: Int64, at now: Instant) -> Bool {
    var isAnyBelowTop = false
    var isAnyPaused = false
    for index in entries.indices where entries[index].ladder.count > 0 {
      if entries[index].ideal < entries[index].ladder.count - 1 { isAnyBelowTop = true }
      if entries[index].current < 0 { isAnyPaused = true }
    }
    guard isAnyBelowTop, !isAnyPaused, present > usable / 4 * 5 else {
      climbUntil = nil
      return false
    }
    let until = climbUntil ?? now + caution.hold
    climbUntil = until
    return now < until
  }

  /// Lowers others for a video that a fresh allocation would give more, as a new one or the new speaker's.
  private mutating func makeRoom(_ usable: Int64, mayRise: Bool, at now: Instant) {
    var needed: Int64 = 0
    var isNew = false
    for position in order.indices {
      let index = order[position]
      guard entries[index].ideal > entries[index].current else { continue }
      guard isFree(index, mayRise: mayRise, at: now) else { continue }
      needed +=
        entries[index].ladder.rate(entries[index].ideal) - entries[index].ladder.rate(entries[index].current)
      if entries[index].current < 0 { isNew = true }
    }
    var over = sum + needed - usable
    guard over > 0 else { return }
    var position = order.count
    while position > 0 {
      position -= 1
      let index = order[position]
      guard over > 0 && entries[index].ideal < entries[index].current else { continue }
      // Only a video that would see nothing at all may disturb one that has just changed.
      if !isNew, let changed = entries[index].changedAt, now - changed < caution.calm { continue }
      over -=
        entries[index].ladder.rate(entries[index].current) - entries[index].ladder.rate(entries[index].ideal)
      set(index, to: entries[index].ideal, at: now)
    }
  }

  private func isFree(_ index: Int, mayRise: Bool, at now: Instant) -> Bool {
    let changed = entries[index].changedAt
    if now < entries[index].freeUntil { return true }
    guard let changed else { return mayRise || entries[index].current < 0 }
    return mayRise && now - changed >= caution.calm
  }

  // MARK: - The fresh allocation

  /// Sets every entry's `ideal` to what it would get if nothing were sent yet.
  private mutating func fill(_ budget: Int64) {
    var left = budget
    var isAnyPaused = false
    for position in order.indices {
      let index = order[position]
      let lowest = entries[index].ladder.rate(0)
      guard entries[index].ladder.count > 0 else {
        entries[index].ideal = -1
        continue
      }
      // Once one does not fit, no less important one is sent in its place.
      if (isAnyPaused || lowest > left) && entries[index].track.canPause {
        entries[index].ideal = -1
        isAnyPaused = true
      } else {
        entries[index].ideal = 0
        left -= lowest
      }
    }
    guard !isAnyPaused, left > 0 else { return }
    for position in order.indices {
      let index = order[position]
      guard entries[index].track.isSpeaking else { continue }
      while step(index, &left) {}
    }
    var hasChanged = true
    while hasChanged {
      hasChanged = false
      for position in order.indices {
        let index = order[position]
        if step(index, &left) { hasChanged = true }
      }
    }
  }

  /// Raises `ideal` by one step if that fits.
  private mutating func step(_ index: Int, _ left: inout Int64) -> Bool {
    let ideal = entries[index].ideal
    guard ideal + 1 < entries[index].ladder.count else { return false }
    let cost = entries[index].ladder.rate(ideal + 1) - entries[index].ladder.rate(ideal)
    guard cost <= left else { return false }
    left -= cost
    entries[index].ideal = ideal + 1
    return true
  }

  private var sum: Int64 {
    var sum: Int64 = 0
    for index in entries.indices { sum += entries[index].ladder.rate(entries[index].current) }
    return sum
  }

  private mutating func set(_ index: Int, to step: Int, at now: Instant) {
    entries[index].current = step
    entries[index].layer = step < 0 ? nil : entries[index].ladder[step].layer
    entries[index].changedAt = now
  }

  /// Insertion sort: in place, stable, and short lists are nearly sorted.
  private mutating func sort() {
    var position = 1
    while position < order.count {
      var slot = position
      while slot > 0, precedes(order[slot], order[slot - 1]) {
        let moved = order[slot]
        order[slot] = order[slot - 1]
        order[slot - 1] = moved
        slot -= 1
      }
      position += 1
    }
  }

  private func precedes(_ one: Int, _ other: Int) -> Bool {
    let (left, right) = (entries[one].track, entries[other].track)
    if left.isSpeaking != right.isSpeaking { return left.isSpeaking }
    let (high, low) = (left.priority == 0 ? .max : left.priority, right.priority == 0 ? .max : right.priority)
    return high != low ? high < low : one < other
  }
}
