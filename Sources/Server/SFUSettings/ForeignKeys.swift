/// LiveKit's keys that mean nothing here, so that its operators' files get a clear word about each.
///
/// A key is refused where going on without it would surprise: an address announced that was to be hidden, a name kept
/// off that was to be off. All others are ignored with a warning.
enum ForeignKeys {
  enum Answer {
    /// Nothing here does it.
    case ignored(String)
    /// It would matter.
    case refused(String)
  }

  /// By path; a section stands for all in it.
  static let answers: [String: Answer] = [
    "redis": .ignored("this server runs alone: two of them behind one name split a room"),
    "region": .ignored("there is one node"),
    "node_selector": .ignored("there is one node"),
    "signal_relay": .ignored("there is one node"),
    "psrpc": .ignored("there is one node"),
    "node_stats": .ignored("there is one node"),
    "turn": .ignored("no TURN server is built in; run coturn and name it in rtc.turn_servers"),
    "ingress": .ignored("there is no ingress"),
    "egress": .ignored("there is no egress"),
    "sip": .ignored("there is no SIP"),
    "whip": .ignored("there is no WHIP"),
    "agents": .ignored("there are no agents"),
    "api": .ignored("its times are fixed"),
    "metric": .ignored("metrics come at their own pace"),
    "trace": .ignored("there is no tracing"),
    "datastream": .ignored("data streams need no setting"),
    "enable_data_tracks": .ignored("there are no data tracks"),
    "rtc.port_range_start": .ignored("each worker has one UDP port for all clients; see rtc.udp_port"),
    "rtc.port_range_end": .ignored("each worker has one UDP port for all clients; see rtc.udp_port"),
    "rtc.force_tcp": .refused("clients choose their transport"),
    "rtc.allow_tcp_fallback": .ignored("clients choose their transport"),
    "rtc.allow_udp_unstable_fallback": .ignored("clients choose their transport"),
    "rtc.interfaces": .refused("name the address to announce in rtc.node_ip"),
    "rtc.ips": .refused("name the address to announce in rtc.node_ip"),
    "rtc.enable_loopback_candidate": .ignored("loopback is announced when it is the address to listen on"),
    "rtc.use_ice_lite": .ignored("the server is ICE lite"),
    "rtc.use_mdns": .ignored("the server resolves no names of clients"),
    "rtc.external_ip_only": .ignored("only the external address is announced; see rtc.advertise_internal_ip"),
    "rtc.strict_acks": .ignored("the server is ICE lite"),
    "rtc.batch_io": .ignored("packets are always sent in batches"),
    "rtc.packet_buffer_size": .ignored("buffers are sized by themselves"),
    "rtc.packet_buffer_size_video": .ignored("buffers are sized by themselves"),
    "rtc.packet_buffer_size_audio": .ignored("buffers are sized by themselves"),
    "rtc.congestion_control.allow_pause": .ignored("a client says whether its videos may be paused"),
    "rtc.reconnect_on_publication_error": .ignored("clients recover by themselves"),
    "rtc.reconnect_on_subscription_error": .ignored("clients recover by themselves"),
    "rtc.reconnect_on_data_channel_error": .ignored("clients recover by themselves"),
    "rtc.data_channel_max_buffered_amount": .ignored("buffers are bounded by themselves"),
    "rtc.datachannel_lossy_target_latency": .ignored("buffers are bounded by themselves"),
    "rtc.datachannel_slow_threshold": .ignored("buffers are bounded by themselves"),
    "rtc.forward_stats": .ignored("metrics count what is forwarded"),
    "audio.active_level": .ignored("the speech detector has its own"),
    "audio.min_percentile": .ignored("the speech detector has its own"),
    "audio.update_interval": .ignored("the speech detector has its own"),
    "audio.smooth_intervals": .ignored("the speech detector has its own"),
    "video": .ignored("layers go on and off by themselves"),
    "room.max_metadata_size": .ignored("metadata has at most 64 KiB"),
    "room.max_room_name_length": .ignored("names have at most 256 bytes"),
    "room.max_participant_identity_length": .ignored("identities have at most 256 bytes"),
    "room.enabled_codecs": .ignored("Opus and VP8 are forwarded, and no other"),
    "room.playout_delay": .ignored("clients choose their delay"),
    "room.sync_streams": .ignored("streams of one publisher stay in step"),
    "room.room_configurations": .refused("rooms get their settings from RoomService or a token"),
    "room.create_room_enabled": .refused("use room.auto_create"),
    "limit.num_tracks": .ignored("see limit.tracks_per_participant and room.max_participants"),
    "limit.bytes_per_sec": .ignored("the machine's own limit counts"),
    "limit.subscription_limit_video": .ignored("clients subscribe to what they show"),
    "limit.subscription_limit_audio": .ignored("clients subscribe to what they play"),
    "limit.max_metadata_size": .ignored("metadata has at most 64 KiB"),
    "limit.max_attributes_size": .ignored("attributes have at most 64 KiB"),
    "limit.max_room_name_length": .ignored("names have at most 256 bytes"),
    "limit.max_participant_identity_length": .ignored("identities have at most 256 bytes"),
    "limit.max_participant_name_length": .ignored("names have at most 256 bytes"),
    "logging.pion_level": .ignored("there is one level, logging.level"),
    "logging.component_levels": .ignored("there is one level, logging.level"),
    "logging.sample": .ignored("lines are bounded by themselves"),
    "webhook.filter_params": .refused("every event is told"),
  ]
}
