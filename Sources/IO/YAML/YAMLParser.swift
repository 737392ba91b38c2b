import CPalbeYAML

/// How large a document may be.
public struct YAMLLimits: Sendable {
  public var byteCount = 1 << 20
  /// Mappings and sequences inside each other.
  public var depth = 32
  /// Scalars, sequences and mappings, each alias counted with all that it repeats.
  public var nodeCount = 50_000

  /// The limits above.
  public init() {}
}

extension YAMLNode {
  /// Reads one YAML document, as libyaml does (YAML 1.1).
  ///
  ///     let node = try YAMLNode(parsing: Array("rtc:\n  udp_port: 7882\n".utf8))
  ///
  /// Refused besides what is no YAML: a second document, a key twice in one mapping, a key that is no scalar, tags other than
  /// `!!str`, merge keys, and whatever passes the limits. Nil for a document without a value.
  public init?(parsing bytes: [UInt8], limits: YAMLLimits = YAMLLimits()) throws(YAMLError) {
    guard bytes.count <= limits.byteCount else {
      throw YAMLError(
        "the document is larger than \(limits.byteCount) bytes", at: YAMLPosition(line: 1, column: 1))
    }
    let parser = try Parser(bytes, limits: limits)
    guard let node = try parser.document() else { return nil }
    self = node
  }
}

/// libyaml's parser, made into nodes.
private final class Parser {
  /// A node, and what it costs to go through it.
  private struct Built {
    var node: YAMLNode
    /// Itself and all below.
    var nodeCount = 1
    /// Levels of mappings and sequences in it.
    var height = 0
  }

  private let input: UnsafeMutableBufferPointer<UInt8>
  private let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
  private let limits: YAMLLimits
  private var nodeCount = 0
  private var anchors: [String: Built] = [:]

  init(_ bytes: [UInt8], limits: YAMLLimits) throws(YAMLError) {
    self.limits = limits
    input = .allocate(capacity: max(1, bytes.count))
    _ = input.initialize(from: bytes)
    guard yaml_parser_initialize(parser) == 1 else {
      parser.initialize(to: yaml_parser_t())
      throw YAMLError("no memory", at: YAMLPosition(line: 1, column: 1))
    }
    yaml_parser_set_input_string(parser, input.baseAddress, bytes.count)
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
  }

  deinit {
    yaml_parser_delete(parser)
    parser.deallocate()
    input.deallocate()
  }

  func document() throws(YAMLError) -> YAMLNode? {
    var root: YAMLNode?
    while true {
      let event = try next()
      switch event.type {
      case YAML_STREAM_END_EVENT: return root
      case YAML_DOCUMENT_START_EVENT:
        guard root == nil else { throw YAMLError("a second document is not allowed", at: event.position) }
        root = try node(from: try next(), depth: 0).node
      default: continue
      }
    }
  }

  private func next() throws(YAMLError) -> Event {
    var raw = yaml_event_t()
    guard yaml_parser_parse(parser, &raw) == 1 else { throw problem() }
    defer { yaml_event_delete(&raw) }
    return Event(&raw)
  }

  private func problem() -> YAMLError {
    let failed = parser.pointee
    // Of bytes that are no text the parser knows how far it had come, but not where that is.
    let mark = failed.error == YAML_READER_ERROR ? failed.mark : failed.problem_mark
    let words = failed.problem.map { String(cString: $0) } ?? "not YAML"
    return YAMLError(words, at: YAMLPosition(mark))
  }

  private func node(from event: Event, depth: Int) throws(YAMLError) -> Built {
    let built: Built
    switch event.type {
    case YAML_ALIAS_EVENT:
      guard let known = anchors[event.anchor] else {
        throw YAMLError("an alias without its anchor before it", at: event.position)
      }
      var copy = known
      copy.node.position = event.position
      try count(copy.nodeCount, at: event)
      guard depth + copy.height <= limits.depth else { throw tooDeep(event) }
      return copy
    case YAML_SCALAR_EVENT:
      try count(1, at: event)
      built = Built(node: YAMLNode(.scalar(event.text, isPlain: event.isPlain), at: event.position))
    case YAML_SEQUENCE_START_EVENT, YAML_MAPPING_START_EVENT:
      try count(1, at: event)
      guard depth < limits.depth else { throw tooDeep(event) }
      built =
        event.type == YAML_SEQUENCE_START_EVENT
        ? try sequence(event, depth: depth + 1) : try mapping(event, depth: depth + 1)
    default: throw YAMLError("a value is missing", at: event.position)
    }
    guard event.tag.isEmpty || event.tag == "!" || event.tag == "tag:yaml.org,2002:str" else {
      throw YAMLError("tags are not supported", at: event.position)
    }
    if !event.anchor.isEmpty { anchors[event.anchor] = built }
    return built
  }

  private func sequence(_ start: Event, depth: Int) throws(YAMLError) -> Built {
    var items: [YAMLNode] = []
    var built = Built(node: YAMLNode(.sequence([]), at: start.position))
    while true {
      let event = try next()
      guard event.type != YAML_SEQUENCE_END_EVENT else { break }
      let item = try node(from: event, depth: depth)
      built.nodeCount += item.nodeCount
      built.height = max(built.height, item.height)
      items.append(item.node)
    }
    built.height += 1
    built.node.content = .sequence(items)
    return built
  }

  private func mapping(_ start: Event, depth: Int) throws(YAMLError) -> Built {
    var entries: [YAMLNode.Entry] = []
    var keys: Set<String> = []
    var built = Built(node: YAMLNode(.mapping([]), at: start.position))
    while true {
      let event = try next()
      guard event.type != YAML_MAPPING_END_EVENT else { break }
      guard let key = try node(from: event, depth: depth).node.text else {
        throw YAMLError("a key has to be plain text", at: event.position)
      }
      guard key != "<<" || !event.isPlain else {
        throw YAMLError("merge keys are not supported", at: event.position)
      }
      guard keys.insert(key).inserted else {
        throw YAMLError("a key that this mapping has already", at: event.position)
      }
      let value = try node(from: try next(), depth: depth)
      built.nodeCount += value.nodeCount + 1
      built.height = max(built.height, value.height)
      entries.append(YAMLNode.Entry(key: key, keyPosition: event.position, value: value.node))
    }
    built.height += 1
    built.node.content = .mapping(entries)
    return built
  }

  private func count(_ more: Int, at event: Event) throws(YAMLError) {
    nodeCount += more
    guard nodeCount <= limits.nodeCount else {
      throw YAMLError("more than \(limits.nodeCount) values", at: event.position)
    }
  }

  private func tooDeep(_ event: Event) -> YAMLError {
    YAMLError("more than \(limits.depth) levels", at: event.position)
  }
}

/// What the parser said, copied out of its memory.
private struct Event {
  var type: yaml_event_type_t
  var position: YAMLPosition
  var text = ""
  var isPlain = false
  var anchor = ""
  var tag = ""

  init(_ raw: inout yaml_event_t) {
    type = raw.type
    position = YAMLPosition(raw.start_mark)
    switch raw.type {
    case YAML_SCALAR_EVENT:
      let scalar = raw.data.scalar
      text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
      isPlain = scalar.style == YAML_PLAIN_SCALAR_STYLE && scalar.tag == nil
      anchor = Self.string(scalar.anchor)
      tag = Self.string(scalar.tag)
    case YAML_SEQUENCE_START_EVENT:
      anchor = Self.string(raw.data.sequence_start.anchor)
      tag = Self.string(raw.data.sequence_start.tag)
    case YAML_MAPPING_START_EVENT:
      anchor = Self.string(raw.data.mapping_start.anchor)
      tag = Self.string(raw.data.mapping_start.tag)
    case YAML_ALIAS_EVENT: anchor = Self.string(raw.data.alias.anchor)
    default: break
    }
  }

  private static func string(_ text: UnsafeMutablePointer<yaml_char_t>?) -> String {
    text.map { String(cString: $0) } ?? ""
  }
}

extension YAMLPosition {
  fileprivate init(_ mark: yaml_mark_t) {
    self.init(line: Int(clamping: mark.line) + 1, column: Int(clamping: mark.column) + 1)
  }
}
