// LiveKit's frame format over encoded frames, written against the format's description: the wheel's JavaScript has the
// half that runs in the page, not this one. One shared key in slot 0.
const SALT = new TextEncoder().encode('LKFrameEncryptionKey')
const TAG_BYTES = 16
const IV_BYTES = 12
let keyReady
let haveKey = new Promise((resolve) => (keyReady = resolve))
let sent = 0

onmessage = async ({ data: { kind, data } }) => {
  switch (kind) {
    case 'init':
      postMessage({ kind: 'initAck', data: { enabled: false } })
      break
    case 'enable':
      postMessage({ kind: 'enable', data })
      break
    case 'setKey': {
      const parameters = { name: 'PBKDF2', salt: SALT, iterations: 100_000, hash: 'SHA-256' }
      const cipher = { name: 'AES-GCM', length: 128 }
      keyReady(await crypto.subtle.deriveKey(parameters, data.key, cipher, false, ['encrypt', 'decrypt']))
      break
    }
  }
}

// Bytes at the front of a frame that stay readable.
function clearBytes(frame) {
  if (!('type' in frame)) return 1
  return frame.type === 'key' ? 10 : 3
}

async function encode(frame, controller) {
  const bytes = new Uint8Array(frame.data)
  if (bytes.length === 0) return controller.enqueue(frame)
  const key = await haveKey
  const clear = bytes.subarray(0, Math.min(clearBytes(frame), bytes.length))
  const iv = new DataView(new ArrayBuffer(IV_BYTES))
  const { synchronizationSource, rtpTimestamp } = frame.getMetadata()
  iv.setUint32(0, synchronizationSource)
  iv.setUint32(4, rtpTimestamp)
  iv.setUint32(8, rtpTimestamp - (sent++ % 0xffff))
  const parameters = { name: 'AES-GCM', iv: iv.buffer, additionalData: clear }
  const sealed = new Uint8Array(await crypto.subtle.encrypt(parameters, key, bytes.subarray(clear.length)))
  const output = new Uint8Array(clear.length + sealed.length + IV_BYTES + 2)
  output.set(clear)
  output.set(sealed, clear.length)
  output.set(new Uint8Array(iv.buffer), clear.length + sealed.length)
  output.set([IV_BYTES, 0], output.length - 2)
  frame.data = output.buffer
  controller.enqueue(frame)
}

async function decode(frame, controller) {
  const bytes = new Uint8Array(frame.data)
  if (bytes.length === 0) return controller.enqueue(frame)
  const key = await haveKey
  const end = bytes.length - 2 - IV_BYTES
  const clear = bytes.subarray(0, clearBytes(frame))
  if (end < clear.length + TAG_BYTES || bytes[bytes.length - 2] !== IV_BYTES) return
  const parameters = { name: 'AES-GCM', iv: bytes.slice(end, end + IV_BYTES), additionalData: clear }
  try {
    const opened = new Uint8Array(await crypto.subtle.decrypt(parameters, key, bytes.subarray(clear.length, end)))
    const output = new Uint8Array(clear.length + opened.length)
    output.set(clear)
    output.set(opened, clear.length)
    frame.data = output.buffer
    controller.enqueue(frame)
  } catch {
    // Not for us: dropped.
  }
}

onrtctransform = ({ transformer }) => {
  const transform = transformer.options.kind === 'encode' ? encode : decode
  transformer.readable.pipeThrough(new TransformStream({ transform })).pipeTo(transformer.writable)
}
