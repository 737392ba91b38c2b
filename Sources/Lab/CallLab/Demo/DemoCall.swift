import PalbeCallCore
import PalbeEventLoop
import PalbeUnits

/// The measured call of a demo: two participants, a key change half-way, and somebody with a wrong key.
struct DemoCall {
  let run: DemoRun
  let sfu: DemoSFU

  private struct Counters {
    var time: Instant
    var anna: CallStatistics
    var ben: CallStatistics
  }

  /// Places the call, measures it, hangs up.
  func measure(into measured: inout DemoMeasurements) async throws {
    let progress = run.progress
    progress.phase("making an MLS group of anna and ben")
    var group = try CallGroup.make(first: DemoRun.anna.identity, second: DemoRun.ben.identity)
    let (room, key) = (run.newRoom(), try group.callKey())

    progress.phase("anna joins")
    let anna = try await run.join(DemoRun.anna, sfu, room: room, key: key, seconds: run.options.seconds)
    try await Task.sleep(for: .milliseconds(500))
    progress.phase("ben joins")
    let dialled = MonotonicClock.now()
    let ben = try await run.join(DemoRun.ben, sfu, room: room, key: key, seconds: run.options.seconds)
    measured.setups.append((try await run.firstPicture(ben)) - dialled)
    _ = try await run.firstPicture(anna)

    let begin = Counters(
      time: MonotonicClock.now(), anna: try await anna.statistics(), ben: try await ben.statistics())
    let length = TimeDelta.seconds(run.options.seconds)
    func moment(_ percent: Int64) -> Instant {
      begin.time + TimeDelta(nanoseconds: length.nanoseconds / 100 * percent)
    }
    progress.phase("anna and ben talk")
    try await run.sleep(until: moment(20)) { state(begin.time, anna, ben) }
    progress.phase("mallory joins with a wrong key")
    var random = SystemRandom.source()
    let mallory = try await run.join(
      DemoRun.mallory, sfu, room: room, key: random.bytes(32), seconds: run.options.seconds)
    try await run.sleep(until: moment(50)) { state(begin.time, anna, ben) }

    progress.phase("anna commits, the call key changes")
    let rekeyedAt = MonotonicClock.now()
    try await changeKey(&group, anna, ben)
    measured.groupEpoch = group.epoch
    try await run.sleep(until: moment(100)) { state(begin.time, anna, ben) }

    let end = Counters(
      time: MonotonicClock.now(), anna: try await anna.statistics(), ben: try await ben.statistics())
    progress.phase("searching what the SFU holds in memory")
    try await run.endLogging([anna, ben])
    // The last pictures had half a second to arrive; whatever was decoded by now was captured before.
    let (annaSaw, benSaw) = (anna.received.decodes, ben.received.decodes)
    let (annasSent, bensSent) = (anna.sent.captures, ben.sent.captures)
    var search = SFUSearch(anna.sent.frames + ben.sent.frames)
    try search.searchMemory(of: sfu.process.processID)

    progress.phase("hanging up")
    measured.wrongKey = try await wrongKey(mallory)
    for participant in [mallory, ben, anna] { await participant.stop() }

    progress.phase("measuring")
    measured.seconds = (end.time - begin.time).inSeconds
    measured.keyEpochs = [end.anna.keyEpochs, end.ben.keyEpochs]
    var there = direction(from: anna, to: ben, begin.ben, end.ben, end.time - begin.time)
    there.video = VideoMeasurement(
      captures: annasSent, decodes: benSaw, until: end.time, rekeyedAt: rekeyedAt)
    there.video.ssim = ben.received.measureSimilarity()
    var back = direction(from: ben, to: anna, begin.anna, end.anna, end.time - begin.time)
    back.video = VideoMeasurement(
      captures: bensSent, decodes: annaSaw, until: end.time, rekeyedAt: rekeyedAt)
    back.video.ssim = anna.received.measureSimilarity()
    measured.directions = [there, back]
    measureTone(ben.received.heard, &measured)

    // The packets are all written when it has ended; set-ups that are timed afterwards need another.
    if run.options.setupRuns > 1 { try await timeFurtherSetups(&measured) }
    sfu.process.stop()
    search.searchPackets(try sfu.receivedPackets())
    measured.audit = search.result
  }

  private func timeFurtherSetups(_ measured: inout DemoMeasurements) async throws {
    for number in 2...run.options.setupRuns {
      run.progress.phase("timing set-up \(number) of \(run.options.setupRuns)")
      measured.setups.append(try await run.timeSetup(sfu))
    }
  }

  /// Both are at the new epoch before either sends under its key.
  private func changeKey(
    _ group: inout CallGroup, _ anna: DemoParticipant, _ ben: DemoParticipant
  ) async throws {
    try group.rekey()
    let key = try group.callKey()
    try await anna.installKey(key)
    try await ben.installKey(key)
    await anna.confirmKey()
    await ben.confirmKey()
  }

  private func state(_ begin: Instant, _ anna: DemoParticipant, _ ben: DemoParticipant) -> String {
    let seconds = max(0, (MonotonicClock.now() - begin).inSeconds)
    return "\(Int(seconds)) of \(run.options.seconds) s, \(ben.received.decodedCount) and "
      + "\(anna.received.decodedCount) pictures decoded"
  }

  private func wrongKey(_ mallory: DemoParticipant) async throws -> WrongKeyMeasurement {
    let tracks = try await mallory.statistics().remoteTracks
    return WrongKeyMeasurement(
      packets: tracks.reduce(0) { $0 + $1.packets },
      refusedFrames: tracks.reduce(0) { $0 + max($1.failedFrames, $1.framesWithoutKey) },
      decodedFrames: tracks.reduce(UInt64(mallory.received.decodedCount)) { $0 + $1.openedFrames },
      peak: mallory.received.peak)
  }

  private func direction(
    from sender: DemoParticipant, to receiver: DemoParticipant, _ begin: CallStatistics,
    _ end: CallStatistics, _ duration: TimeDelta
  ) -> DirectionMeasurement {
    var result = DirectionMeasurement(from: sender.role.name, to: receiver.role.name)
    result.duration = duration
    result.isEncrypted = receiver.isEncrypted(from: sender.role.identity)
    func tracks(_ statistics: CallStatistics) -> [RemoteTrackStatistics] {
      statistics.remoteTracks.filter { $0.identity == sender.role.identity }
    }
    // Rates are of the measured time; faults count from the beginning.
    let bytesBefore = tracks(begin).reduce(0) { $0 + $1.bytes }
    result.bytes = tracks(end).reduce(0) { $0 + $1.bytes } &- bytesBefore
    for track in tracks(end) {
      result.packets += track.packets
      result.lostPackets += track.lostPackets
      let lostToKeys = max(track.failedFrames, track.framesWithoutKey)
      switch track.kind {
      case .video:
        result.videoJitter = track.jitter
        result.videoLostToKeys += lostToKeys
      case .audio:
        result.audioJitter = track.jitter
        result.audio.played += track.playedPackets
        result.audio.concealed += track.concealedPackets
        result.audio.lostToKeys += lostToKeys
        result.audio.outOfOrder += track.outOfOrder
      }
    }
    result.audio.level = Loudness.rms(receiver.received.heard)
    return result
  }

  /// The tone that ben hears of anna, from half a second after its beginning.
  private func measureTone(_ heard: [Int16], _ measured: inout DemoMeasurements) {
    var meter = ToneMeter(frequency: DemoRun.toneFrequency)
    meter.add(Array(heard.dropFirst(24_000)))
    measured.toneSNR = meter.result?.medianSNR
    measured.toneMeanSNR = meter.result?.meanSNR
  }
}
