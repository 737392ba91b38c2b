// What the tests do inside a browser. Each function answers with something that can be written as JSON.
const BITS = 16
const SAMPLES = 48_000

// By identity: what is received of a participant.
let received = {}
let room

function entry(identity) {
  received[identity] ??= { numbers: [], width: 0, samples: [], video: 0, audio: 0, quality: '', muted: [] }
  return received[identity]
}

function readNumber(luma, stride, width, height) {
  const bar = Math.floor(width / BITS)
  let number = 0
  for (let bit = 0; bit < BITS; bit++) {
    let sum = 0
    let count = 0
    for (let y = height >> 3; y < (height >> 1) - (height >> 3); y++) {
      for (let x = bit * bar + (bar >> 2); x < (bit + 1) * bar - (bar >> 2); x++) {
        sum += luma[y * stride + x]
        count++
      }
    }
    const mean = sum / count
    if (mean > 96 && mean < 160) return -1
    if (mean >= 160) number |= 1 << bit
  }
  return number
}

async function watch(track, seen) {
  seen.video++
  const reader = new MediaStreamTrackProcessor({ track: track.mediaStreamTrack }).readable.getReader()
  for (;;) {
    const { done, value: frame } = await reader.read()
    if (done) return
    try {
      const bytes = new Uint8Array(frame.allocationSize())
      const [luma] = await frame.copyTo(bytes)
      const { width, height } = frame.visibleRect
      seen.width = width
      seen.numbers.push(readNumber(bytes.subarray(luma.offset), luma.stride, width, height))
    } finally {
      frame.close()
    }
  }
}

async function listen(track, seen) {
  seen.audio++
  // A remote track is silent until something plays it.
  document.body.append(track.attach())
  const reader = new MediaStreamTrackProcessor({ track: track.mediaStreamTrack }).readable.getReader()
  for (;;) {
    const { done, value: data } = await reader.read()
    if (done) return
    const block = new Float32Array(data.numberOfFrames)
    data.copyTo(block, { planeIndex: 0, format: 'f32-planar' })
    seen.rate = data.sampleRate
    data.close()
    for (const sample of block) seen.samples.push(Math.round(sample * 32_767))
    if (seen.samples.length > 2 * SAMPLES) seen.samples.splice(0, seen.samples.length - SAMPLES)
  }
}

window.palbe = {
  async join(url, token, options = {}) {
    received = {}
    const publishDefaults = { videoCodec: options.codec ?? 'vp8', backupCodec: false, simulcast: !!options.simulcast }
    // Without it several sizes in one stream are what the client's own defaults say.
    if (options.scalabilityMode) publishDefaults.scalabilityMode = options.scalabilityMode
    const settings = { dynacast: true, publishDefaults }
    if (options.passphrase) settings.e2ee = await palbe.encryption(options.passphrase)
    room = new LiveKit.Room(settings)
    room.on('trackSubscribed', (track, publication, participant) => {
      const seen = entry(participant.identity)
      track.kind === 'video' ? watch(track, seen) : listen(track, seen)
    })
    room.on('trackMuted', (publication, participant) => entry(participant.identity).muted.push(publication.kind))
    room.on('dataReceived', (payload, participant) => {
      (entry(participant?.identity ?? '').data ??= []).push(new TextDecoder().decode(payload))
    })
    palbe.events = []
    for (const name of ['reconnecting', 'signalReconnecting', 'reconnected', 'disconnected']) {
      room.on(name, () => palbe.events.push(name))
    }
    if (settings.e2ee) await room.setE2EEEnabled(true)
    await room.connect(url, token)
    return room.localParticipant.sid
  },

  async encryption(passphrase) {
    const keyProvider = new LiveKit.KeyProvider({ sharedKey: true, ratchetWindowSize: 0 })
    const bytes = new TextEncoder().encode(passphrase)
    keyProvider.onSetEncryptionKey(await crypto.subtle.importKey('raw', bytes, 'PBKDF2', false, ['deriveBits', 'deriveKey']))
    return { keyProvider, worker: new Worker('worker.js', { type: 'module' }) }
  },

  async publish() {
    const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false }
    await room.localParticipant.setMicrophoneEnabled(true, plain)
    await room.localParticipant.setCameraEnabled(true, { resolution: { width: 640, height: 360, frameRate: 30 } })
    return [...room.localParticipant.trackPublications.values()].map((publication) => publication.trackSid)
  },

  // Of the video that is sent: how it is encoded.
  async sent() {
    const [publication] = [...room.localParticipant.videoTrackPublications.values()]
    const outbound = []
    for (const stat of (await publication.track.getRTCStatsReport()).values()) {
      if (stat.type === 'outbound-rtp') outbound.push(stat)
    }
    return outbound.map(({ scalabilityMode, frameWidth, framesEncoded, keyFramesEncoded, pliCount, bytesSent }) =>
      ({ scalabilityMode, frameWidth, framesEncoded, keyFramesEncoded, pliCount, bytesSent }))
  },

  async enable(camera) {
    await room.localParticipant.setCameraEnabled(camera)
  },

  state(identity) {
    const { numbers, width, video, audio, muted, data } = entry(identity)
    return { numbers, width, video, audio, muted, data: data ?? [], present: room.remoteParticipants.has(identity) }
  },

  count: (identity) => entry(identity).numbers.filter((number) => number >= 0).length,
  width: (identity) => entry(identity).width,
  sound: (identity) => entry(identity).samples.slice(-SAMPLES),
  happened: () => palbe.events,

  publication(identity) {
    return [...room.remoteParticipants.get(identity).videoTrackPublications.values()][0]
  },

  setQuality(identity, quality) {
    palbe.publication(identity).setVideoQuality(quality)
  },

  async subscribe(identity, isWanted) {
    palbe.publication(identity).setSubscribed(isWanted)
  },

  async sendData(text) {
    await room.localParticipant.publishData(new TextEncoder().encode(text), { reliable: true })
  },

  async leave() {
    await room.disconnect()
  },
}
