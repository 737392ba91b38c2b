import PalbeRTP
import PalbeUnits

/// Which layer of a source that sends several in one stream goes through to a subscriber.
///
/// ## Overview
///
///     a picture begins ── the wanted layer's frames all went through so far ──▶ it is taken from here on
///                      └─ some were left out ──▶ a frame from which it can go on, or a key picture, brings it back
///
/// What is taken changes with a whole picture only, so that the last packet of a picture is known when it comes. Where a larger
/// size needs the smaller ones in every picture, down is possible anywhere; where it needs them in key pictures alone
/// they are left out meanwhile, which saves their rate, and a change of size waits for a key picture.
struct LayerSelection: BitwiseCopyable {
  /// Pictures to wait for a frame to switch at before a key picture is asked for.
  private static let patience: UInt8 = 60
  /// Frames whose descriptors tell what is active after a change: one of them will arrive.
  private static let tellings: UInt8 = 8

  /// Its index in a `LayerSet`.
  private(set) var current: UInt8 = 0
  /// What the subscriber and its link want.
  private(set) var wanted: UInt8 = 0
  /// Layers of which every frame went through since the last key picture.
  private var intact = LayerSet.all
  /// Pictures since another layer than the current one is wanted.
  private var waited: UInt8 = 0
  /// The layers that the subscriber is told to be active.
  private(set) var active = LayerSet.all
  private var tellingsLeft: UInt8 = 0
  /// Everything that is sent goes through.
  private var takesAll = true

  var spatial: UInt8 { current >> 2 }

  /// Only a key picture brings what is wanted.
  var needsKeyFrame: Bool {
    wanted != current && !intact[wanted] && (wanted >> 2 != current >> 2 || waited >= Self.patience)
  }

  /// A key picture begins, at which every layer can.
  mutating func begin(_ layer: UInt8, of layering: Layering) {
    current = layer
    wanted = layer
    intact = .all
    waited = 0
    change(layering)
    // The structure of a key picture has everything active.
    if takesAll { tellingsLeft = 0 }
  }

  /// Another one is wanted.
  mutating func want(_ layer: UInt8) { wanted = layer }

  /// A picture begins that others precede.
  mutating func beginPicture(_ frame: FrameLayers, wanted new: UInt8, of layering: Layering) {
    pass(frame)
    wanted = new
    guard wanted != current else { return waited = 0 }
    if intact[wanted] {
      current = wanted
      waited = 0
      change(layering)
    } else {
      waited = min(waited + 1, Self.patience)
      // Less of the same size, until a key picture of the smaller one comes.
      let part = current & ~3 | min(current & 3, wanted & 3)
      if wanted < current, part != current, intact[part] {
        current = part
        change(layering)
      }
    }
  }

  /// A frame begins.
  mutating func pass(_ frame: FrameLayers) {
    if !frame.needed.isDisjoint(with: intact) { intact.formUnion(frame.switching) }
  }

  func takes(_ frame: FrameLayers) -> Bool { frame.needed[current] }

  mutating func leaveOut(_ frame: FrameLayers) { intact.subtract(frame.needed) }

  /// True for a packet that has to tell which layers are active: the first one of a frame, for a while.
  mutating func tells(_ frame: FrameLayers) -> Bool {
    guard frame.startsFrame, tellingsLeft > 0 || frame.tellsActive && !takesAll else { return false }
    if tellingsLeft > 0 { tellingsLeft -= 1 }
    return true
  }

  private mutating func change(_ layering: Layering) {
    active = layering.structure.covered(by: current)
    takesAll = active == layering.structure.layers
    tellingsLeft = Self.tellings
  }
}
