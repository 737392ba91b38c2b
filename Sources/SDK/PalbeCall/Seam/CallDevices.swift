package import PalbeUnits

/// What a transport takes its media from and gives it to.
package struct CallDevices: Sendable {
  /// Opens the microphone, once a call.
  package var microphone: @Sendable () -> any AudioSource
  /// Opens the camera, once a call that publishes video.
  package var camera: @Sendable () -> any VideoSource
  /// Speaker, screen and measurements. Its events come beside the transport's.
  package var hooks: CallEngine.Hooks

  /// Silence, a black picture, and nobody who listens, unless told otherwise.
  package init(
    microphone: @escaping @Sendable () -> any AudioSource = { Silence() },
    camera: @escaping @Sendable () -> any VideoSource = { BlackPicture() },
    hooks: CallEngine.Hooks = CallEngine.Hooks()
  ) {
    self.microphone = microphone
    self.camera = camera
    self.hooks = hooks
  }
}

/// A microphone that hears nothing.
package struct Silence: AudioSource {
  package init() {}
  package mutating func next(into frame: inout [Int16]) {
    for index in frame.indices { frame[index] = 0 }
  }
}

/// A camera with its cap on.
package struct BlackPicture: VideoSource {
  package let width: Int
  package let height: Int

  package init(width: Int = 640, height: Int = 360) {
    self.width = width
    self.height = height
  }

  package mutating func next(frameIndex: Int, into picture: inout I420Image) -> Bool {
    // The memory that comes back is that of the picture before, which is black already.
    if picture.width != width || picture.height != height || frameIndex == 0 {
      picture = I420Image(width: width, height: height)
    }
    return true
  }
}
