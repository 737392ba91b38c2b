import PalbeRTP
import PalbeUnits
import PalbeWire

/// Of which layer a packet's frame is, in a stream that carries several, and who needs it.
struct FrameLayers: BitwiseCopyable {
  var spatial: UInt8
  var temporal: UInt8
  /// The layers that need the frame.
  var needed: LayerSet
  /// The layers that whoever can decode this frame can go on with.
  var switching: LayerSet
  var startsFrame: Bool
  var endsFrame: Bool
  /// The packet tells which layers are sent.
  var tellsActive = false
}

/// What is known of the layers that a source sends in its one stream. Made with its first packet that has any.
final class Layering {
  /// Pictures that lack the largest size before it is taken to be gone.
  private static let patience = 8

  /// What the last key frame told of the frames, where dependency descriptors do.
  private(set) var structure = FrameDependencyStructure()
  private var structureSequence: ExtendedSequenceNumber?
  /// Those that are sent now.
  private(set) var present = LayerSet()
  /// Sizes of the stream, of those that are not sent too.
  private(set) var sizeCount = 0
  /// Pictures in a row without the largest size.
  private var smaller = 0
  private var smallerCount = 0

  /// True for a packet, by the lower half of its number, that does not lie before the last structure: its descriptor can be read
  /// with that.
  func isCurrent(_ sequence: UInt32) -> Bool {
    guard let structureSequence else { return false }
    return Int32(bitPattern: sequence &- UInt32(truncatingIfNeeded: structureSequence.rawValue)) >= 0
  }

  /// Reads a dependency descriptor; nil when it cannot be, or tells nothing.
  func read(_ bytes: Span<UInt8>, sequence: ExtendedSequenceNumber) -> FrameLayers? {
    // One of before the last structure came late.
    if let structureSequence, sequence < structureSequence { return nil }
    do throws(WireError) {
      let descriptor = try DependencyDescriptor.parse(bytes, with: &structure)
      if descriptor.hasStructure {
        structureSequence = sequence
        present = structure.layers
        sizeCount = present.sizeCount
      }
      if let active = descriptor.active { present = active }
      // A stream without layers is like any other.
      guard structure.layers.rawValue.nonzeroBitCount > 1 else { return nil }
      return FrameLayers(
        spatial: descriptor.spatialLayer, temporal: descriptor.temporalLayer, needed: descriptor.needed,
        switching: descriptor.switching, startsFrame: descriptor.startsFrame,
        endsFrame: descriptor.endsFrame, tellsActive: descriptor.hasStructure || descriptor.active != nil)
    } catch { return nil }
  }

  /// What VP9's descriptor tells by itself.
  func read(_ descriptor: VP9PayloadDescriptor, endsPicture: Bool) -> FrameLayers {
    if structureSequence == nil { count(descriptor, endsPicture: endsPicture) }
    return FrameLayers(
      spatial: descriptor.spatialLayer, temporal: min(descriptor.temporalLayer, 3),
      needed: descriptor.needed, switching: descriptor.switching, startsFrame: descriptor.startsFrame,
      endsFrame: descriptor.endsFrame)
  }

  /// The sizes that are sent: those of the scalability structure, until pictures end with a smaller one for long.
  private func count(_ descriptor: VP9PayloadDescriptor, endsPicture: Bool) {
    let seen = Int(descriptor.spatialLayer) + 1
    let count = max(Int(descriptor.sizeCount), seen)
    if descriptor.sizeCount > 0 || count > present.sizeCount {
      sizeCount = max(Int(descriptor.sizeCount), descriptor.sizeCount > 0 ? 0 : sizeCount, seen)
      present = .sizes(count)
      smaller = 0
    }
    guard endsPicture else { return }
    guard seen < present.sizeCount else { return smaller = 0 }
    smallerCount = smaller == 0 ? seen : max(smallerCount, seen)
    smaller += 1
    if smaller == Self.patience {
      present = .sizes(smallerCount)
      smaller = 0
    }
  }
}

extension MediaPacket {
  /// Reads of which layer the packet is. Nothing for a stream that has one only.
  mutating func readLayers(of stream: IncomingStream, sequence: ExtendedSequenceNumber) {
    guard descriptor == nil, extensions.dependencyDescriptor != nil || vp9?.hasLayer == true else { return }
    let layering = stream.knownLayering
    if let range = extensions.dependencyDescriptor?.range, range.upperBound <= count {
      setLayers(layering.read(span.extracting(range), sequence: sequence))
    }
    if layers == nil, let vp9, vp9.hasLayer {
      setLayers(layering.read(vp9, endsPicture: header.marker))
    }
  }
}
