#pragma once
// Debian builds the library with both; its pkg-config flags are refused by the package manager.
#define INET 1
#define INET6 1
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <usrsctp.h>

// Calls that need C: structures with flexible arrays, unions, byte order and errno. Results are 0 or more, or
// -errno.

typedef int (*palbe_sctp_output)(void *address, void *bytes, size_t count, uint8_t tos, uint8_t whole);

struct palbe_sctp_options {
  uint32_t send_buffer;
  uint32_t receive_buffer;
  uint16_t streams;
  uint16_t port;
  // Bytes of an SCTP packet, header and all.
  uint32_t packet_limit;
  uint32_t rto_initial, rto_min, rto_max;
  uint16_t retransmissions;
};

// Starts the library. No threads, no sockets of the system's.
static inline void palbe_sctp_start(palbe_sctp_output output) {
  usrsctp_init_nothreads(0, output, NULL);
  usrsctp_sysctl_set_sctp_auto_asconf(0);
  usrsctp_sysctl_set_sctp_asconf_enable(0);
  usrsctp_sysctl_set_sctp_auth_enable(0);
  usrsctp_sysctl_set_sctp_ecn_enable(0);
  usrsctp_sysctl_set_sctp_nrsack_enable(0);
  usrsctp_sysctl_set_sctp_pktdrop_enable(0);
  usrsctp_sysctl_set_sctp_pr_enable(1);
  usrsctp_sysctl_set_sctp_reconfig_enable(1);
  // Packets that belong to nothing get no answer.
  usrsctp_sysctl_set_sctp_blackhole(2);
  usrsctp_sysctl_set_sctp_initial_cwnd(10);
  // Nobody caches freed parts of associations.
  usrsctp_sysctl_set_sctp_system_free_resc_limit(0);
  usrsctp_sysctl_set_sctp_asoc_free_resc_limit(0);
}

static inline struct sockaddr_conn palbe_sctp_address(uintptr_t slot, uint16_t port) {
  struct sockaddr_conn address;
  memset(&address, 0, sizeof(address));
  address.sconn_family = AF_CONN;
  address.sconn_port = htons(port);
  address.sconn_addr = (void *)slot;
  return address;
}

static inline void palbe_sctp_register(uintptr_t slot) { usrsctp_register_address((void *)slot); }

static inline int palbe_sctp_set(struct socket *socket, int option, const void *value, socklen_t count) {
  return usrsctp_setsockopt(socket, IPPROTO_SCTP, option, value, count);
}

static inline int palbe_sctp_configure(struct socket *socket, const struct palbe_sctp_options *options) {
  struct linger linger = {1, 0};
  struct sctp_assoc_value reset = {SCTP_FUTURE_ASSOC, SCTP_ENABLE_RESET_STREAM_REQ};
  struct sctp_initmsg init = {options->streams, options->streams, options->retransmissions,
                              (uint16_t)options->rto_max};
  struct sctp_rtoinfo rto = {SCTP_FUTURE_ASSOC, options->rto_initial, options->rto_max, options->rto_min};
  struct sctp_assocparams association;
  struct sctp_paddrparams path;
  struct sctp_event event;
  const uint16_t events[] = {SCTP_ASSOC_CHANGE, SCTP_STREAM_RESET_EVENT};
  int on = 1;
  int send_buffer = (int)options->send_buffer, receive_buffer = (int)options->receive_buffer;
  memset(&association, 0, sizeof(association));
  association.sasoc_asocmaxrxt = options->retransmissions;
  memset(&path, 0, sizeof(path));
  path.spp_flags = SPP_HB_DISABLE | SPP_PMTUD_DISABLE;
  path.spp_pathmtu = options->packet_limit - (uint32_t)sizeof(struct sctp_common_header);
  path.spp_pathmaxrxt = options->retransmissions;
  if (usrsctp_set_non_blocking(socket, 1) < 0 ||
      usrsctp_setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0 ||
      usrsctp_setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer)) < 0 ||
      usrsctp_setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer)) < 0 ||
      palbe_sctp_set(socket, SCTP_NODELAY, &on, sizeof(on)) < 0 ||
      palbe_sctp_set(socket, SCTP_RECVRCVINFO, &on, sizeof(on)) < 0 ||
      palbe_sctp_set(socket, SCTP_ENABLE_STREAM_RESET, &reset, sizeof(reset)) < 0 ||
      palbe_sctp_set(socket, SCTP_INITMSG, &init, sizeof(init)) < 0 ||
      palbe_sctp_set(socket, SCTP_RTOINFO, &rto, sizeof(rto)) < 0 ||
      palbe_sctp_set(socket, SCTP_ASSOCINFO, &association, sizeof(association)) < 0 ||
      palbe_sctp_set(socket, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path)) < 0)
    return -errno;
  for (size_t index = 0; index < sizeof(events) / sizeof(events[0]); index++) {
    memset(&event, 0, sizeof(event));
    event.se_assoc_id = SCTP_FUTURE_ASSOC;
    event.se_type = events[index];
    event.se_on = 1;
    if (palbe_sctp_set(socket, SCTP_EVENT, &event, sizeof(event)) < 0) return -errno;
  }
  return 0;
}

// Begins to connect, or to listen.
static inline int palbe_sctp_begin(struct socket *socket, uintptr_t slot, uint16_t port, int is_active) {
  struct sockaddr_conn address = palbe_sctp_address(slot, port);
  if (!is_active) return usrsctp_listen(socket, 1) < 0 ? -errno : 0;
  if (usrsctp_connect(socket, (struct sockaddr *)&address, sizeof(address)) == 0) return 0;
  return errno == EINPROGRESS ? 0 : -errno;
}

static inline int palbe_sctp_bind(struct socket *socket, uintptr_t slot, uint16_t port) {
  struct sockaddr_conn address = palbe_sctp_address(slot, port);
  return usrsctp_bind(socket, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static inline struct socket *palbe_sctp_socket(void) {
  return usrsctp_socket(AF_CONN, SOCK_SEQPACKET, IPPROTO_SCTP, NULL, NULL, 0, NULL);
}

enum { PALBE_SCTP_RELIABLE = 0, PALBE_SCTP_RETRANSMITS = 1, PALBE_SCTP_LIFETIME = 2 };

static inline ssize_t palbe_sctp_send(struct socket *socket, uint32_t association, const void *bytes,
                                      size_t count, uint16_t stream, uint32_t ppid, int is_unordered,
                                      int policy, uint32_t value) {
  struct sctp_sendv_spa info;
  memset(&info, 0, sizeof(info));
  info.sendv_flags = SCTP_SEND_SNDINFO_VALID;
  info.sendv_sndinfo.snd_sid = stream;
  info.sendv_sndinfo.snd_flags = is_unordered ? SCTP_UNORDERED : 0;
  info.sendv_sndinfo.snd_ppid = htonl(ppid);
  info.sendv_sndinfo.snd_assoc_id = association;
  if (policy != PALBE_SCTP_RELIABLE) {
    info.sendv_flags |= SCTP_SEND_PRINFO_VALID;
    info.sendv_prinfo.pr_policy = policy == PALBE_SCTP_RETRANSMITS ? SCTP_PR_SCTP_RTX : SCTP_PR_SCTP_TTL;
    info.sendv_prinfo.pr_value = value;
  }
  ssize_t sent = usrsctp_sendv(socket, bytes, count, NULL, 0, &info, sizeof(info), SCTP_SENDV_SPA, 0);
  return sent < 0 ? -(ssize_t)errno : sent;
}

// Says goodbye once everything is acknowledged.
static inline int palbe_sctp_shutdown(struct socket *socket, uint32_t association) {
  struct sctp_sndinfo info;
  memset(&info, 0, sizeof(info));
  info.snd_flags = SCTP_EOF;
  info.snd_assoc_id = association;
  ssize_t sent = usrsctp_sendv(socket, &info, 0, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
  return sent < 0 ? -errno : 0;
}

static inline int palbe_sctp_reset_stream(struct socket *socket, uint32_t association, uint16_t stream) {
  union {
    struct sctp_reset_streams request;
    uint8_t bytes[sizeof(struct sctp_reset_streams) + sizeof(uint16_t)];
  } value;
  memset(&value, 0, sizeof(value));
  value.request.srs_assoc_id = association;
  value.request.srs_flags = SCTP_STREAM_RESET_OUTGOING;
  value.request.srs_number_streams = 1;
  memcpy(value.bytes + sizeof(struct sctp_reset_streams), &stream, sizeof(stream));
  return palbe_sctp_set(socket, SCTP_RESET_STREAMS, &value, sizeof(value)) < 0 ? -errno : 0;
}

// Bytes that the peer has not acknowledged, with a few for each chunk. The option is not in the public header;
// its number and structure have been the same in all releases.
static inline ssize_t palbe_sctp_buffered(struct socket *socket, uint32_t association) {
  struct { sctp_assoc_t association; uint32_t sending, receiving; } use = {association, 0, 0};
  socklen_t count = sizeof(use);
  if (usrsctp_getsockopt(socket, IPPROTO_SCTP, 0x1101, &use, &count) < 0) return -(ssize_t)errno;
  return (ssize_t)use.sending;
}

enum {
  PALBE_SCTP_NOTHING = 0,
  // A message, or the part of it that the buffer holds.
  PALBE_SCTP_DATA,
  PALBE_SCTP_CHANGE,
  PALBE_SCTP_RESET,
  PALBE_SCTP_OTHER,
};

struct palbe_sctp_item {
  int kind;
  // DATA: bytes in the buffer. RESET: numbers of streams, two bytes each, big-endian, from the buffer's start.
  size_t count;
  // DATA: whether this is the end of the message.
  int is_end;
  uint16_t stream;
  uint32_t ppid;
  // CHANGE
  uint32_t association;
  uint16_t state, error, outbound, inbound;
  // RESET
  uint16_t flags;
};

static inline struct palbe_sctp_item palbe_sctp_receive(struct socket *socket, uint8_t *buffer,
                                                        size_t limit) {
  struct palbe_sctp_item item;
  struct sctp_rcvinfo info;
  socklen_t info_count = sizeof(info);
  unsigned int info_type = SCTP_RECVV_NOINFO;
  int flags = 0;
  memset(&item, 0, sizeof(item));
  memset(&info, 0, sizeof(info));
  ssize_t count = usrsctp_recvv(socket, buffer, limit, NULL, NULL, &info, &info_count, &info_type, &flags);
  if (count < 0 || (count == 0 && flags == 0)) return item;
  item.count = (size_t)count;
  if ((flags & MSG_NOTIFICATION) == 0) {
    item.kind = PALBE_SCTP_DATA;
    item.is_end = (flags & MSG_EOR) != 0;
    item.stream = info.rcv_sid;
    item.ppid = ntohl(info.rcv_ppid);
    return item;
  }
  item.kind = PALBE_SCTP_OTHER;
  uint16_t type = 0;
  if (item.count < sizeof(struct sctp_tlv)) return item;
  memcpy(&type, buffer, sizeof(type));
  if (type == SCTP_ASSOC_CHANGE && item.count >= sizeof(struct sctp_assoc_change)) {
    struct sctp_assoc_change change;
    memcpy(&change, buffer, sizeof(change));
    item.kind = PALBE_SCTP_CHANGE;
    item.association = change.sac_assoc_id;
    item.state = change.sac_state;
    item.error = change.sac_error;
    item.outbound = change.sac_outbound_streams;
    item.inbound = change.sac_inbound_streams;
  } else if (type == SCTP_STREAM_RESET_EVENT && item.count >= sizeof(struct sctp_stream_reset_event)) {
    struct sctp_stream_reset_event reset;
    memcpy(&reset, buffer, sizeof(reset));
    item.kind = PALBE_SCTP_RESET;
    item.flags = reset.strreset_flags;
    item.count = (item.count - sizeof(reset)) / sizeof(uint16_t);
    for (size_t index = 0; index < item.count; index++) {
      uint16_t stream;
      memcpy(&stream, buffer + sizeof(reset) + 2 * index, sizeof(stream));
      buffer[2 * index] = (uint8_t)(stream >> 8);
      buffer[2 * index + 1] = (uint8_t)stream;
    }
  }
  return item;
}
