extension FuzzTarget {
  /// Every target, by name.
  public static let all: [FuzzTarget] = [
    .candidateJSON,
    .dtlsDatagram,
    .headerExtensions,
    .hpkeOpen,
    .iceCandidate,
    .opusPacket,
    .p256PublicKey,
    .protobufSignalRequest,
    .protobufSignalResponse,
    .rtcpCompound,
    .rtpPacket,
    .sdp,
    .sealedFrame,
    .sframeHeader,
    .signature,
    .socketAddress,
    .srtpUnprotect,
    .stun,
    .transportFeedback,
    .vp8Assembler,
    .vp8Descriptor,
    .vp8Frame,
    .wav,
    .y4m,
  ]
}
