extension FuzzTarget {
  /// Every target, by name.
  public static let all: [FuzzTarget] = [
    .candidateJSON,
    .headerExtensions,
    .iceCandidate,
    .opusPacket,
    .protobufSignalRequest,
    .protobufSignalResponse,
    .rtcpCompound,
    .rtpPacket,
    .sdp,
    .sealedFrame,
    .sframeHeader,
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
