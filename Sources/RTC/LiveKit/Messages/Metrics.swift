// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: What clients measure

extension LiveKit {
  /// What a participant measured; only those who may subscribe to metrics get it.
  public struct MetricsBatch: ProtobufMessage {
    /// Unix milliseconds on the sender's clock.
    public var timestampMs: Int64 = 0
    /// On the server's clock.
    public var normalizedTimestamp: ProtobufTimestamp?
    /// Texts that the samples name by their place, plus 4,096.
    public var strData: [String] = []
    public var timeSeries: [TimeSeriesMetric] = []
    public var events: [EventMetric] = []
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "timestamp_ms", &timestampMs)
      try f.field(2, "normalized_timestamp", &normalizedTimestamp)
      try f.field(3, "str_data", &strData)
      try f.field(4, "time_series", &timeSeries)
      try f.field(5, "events", &events)
      try f.unknown(&unknownFields)
    }
  }

  /// Samples of one quantity.
  public struct TimeSeriesMetric: ProtobufMessage {
    /// What is measured: a number of the protocol below 4,096, or 4,096 and the place of a text.
    public var label: UInt32 = 0
    public var participantIdentity: UInt32 = 0
    public var trackSid: UInt32 = 0
    public var samples: [MetricSample] = []
    public var rid: UInt32 = 0
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "label", &label)
      try f.field(2, "participant_identity", &participantIdentity)
      try f.field(3, "track_sid", &trackSid)
      try f.field(4, "samples", &samples)
      try f.field(5, "rid", &rid)
      try f.unknown(&unknownFields)
    }
  }

  /// One sample.
  public struct MetricSample: ProtobufMessage {
    public var timestampMs: Int64 = 0
    public var normalizedTimestamp: ProtobufTimestamp?
    public var value: Float = 0
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "timestamp_ms", &timestampMs)
      try f.field(2, "normalized_timestamp", &normalizedTimestamp)
      try f.field(3, "value", &value)
      try f.unknown(&unknownFields)
    }
  }

  /// Something that took time, or a moment.
  public struct EventMetric: ProtobufMessage {
    public var label: UInt32 = 0
    public var participantIdentity: UInt32 = 0
    public var trackSid: UInt32 = 0
    public var startTimestampMs: Int64 = 0
    public var endTimestampMs: Int64?
    public var normalizedStartTimestamp: ProtobufTimestamp?
    public var normalizedEndTimestamp: ProtobufTimestamp?
    public var metadata = ""
    public var rid: UInt32 = 0
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "label", &label)
      try f.field(2, "participant_identity", &participantIdentity)
      try f.field(3, "track_sid", &trackSid)
      try f.field(4, "start_timestamp_ms", &startTimestampMs)
      try f.field(5, "end_timestamp_ms", &endTimestampMs)
      try f.field(6, "normalized_start_timestamp", &normalizedStartTimestamp)
      try f.field(7, "normalized_end_timestamp", &normalizedEndTimestamp)
      try f.field(8, "metadata", &metadata)
      try f.field(9, "rid", &rid)
      try f.unknown(&unknownFields)
    }
  }
}
