import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// Who speaks, told to whom it concerns.
extension Participant {
  /// Levels come in: their windows end from now on.
  func watchSpeech(from now: Instant) {
    nextSpeechAt = now + SpeechDetector.window
    wake(at: nextSpeechAt)
  }

  func endSpeechWindow(at now: Instant) {
    guard now >= nextSpeechAt else {
      wake(at: nextSpeechAt)
      return
    }
    var loudest: Float = 0
    for track in uplink.tracks where track.kind == .audio {
      _ = track.speech.endWindow()
      if track.isAnnounced, !track.info.muted { loudest = max(loudest, track.speech.level) }
    }
    if loudest == 0 {
      nextSpeechAt = .distantFuture
    } else {
      watchSpeech(from: now)
    }
    guard loudest != speechLevel else { return }
    speechLevel = loudest
    room.noteSpeech(of: self)
    room.broadcastSpeech(of: self)
    isSpeechSimulated = false
  }

  /// For a participant that comes to hear this one.
  var speakerInfo: LiveKit.SpeakerInfo {
    .with {
      $0.sid = sid
      $0.level = speechLevel
      $0.active = speechLevel > 0
    }
  }
}

extension Room {
  /// Tells a change to the participant itself and to those who hear it; one that stopped speaking has level 0.
  func broadcastSpeech(of participant: Participant) {
    guard !participant.grant.hidden else { return }
    let message = LiveKit.SignalResponse(.speakersChanged(.with { $0.speakers = [participant.speakerInfo] }))
    let bytes = message.serialized()
    for member in participants
    where member === participant || participant.isSpeechSimulated
      || member.downlink.receives(participant, .audio)
    {
      member.send(bytes)
    }
  }
}
