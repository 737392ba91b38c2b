#pragma once
// What `import Glibc` lacks on Linux.
//
// _GNU_SOURCE is not defined: it changes types that `import Glibc` also defines (fd_set, __rusage_who), and the compiler
// refuses a file that sees both. What only _GNU_SOURCE declares is declared here.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// `struct mmsghdr`: a message and the bytes that were received or sent.
struct palbe_mmsghdr {
  struct msghdr msg_hdr;
  unsigned int msg_len;
};

int palbe_recvmmsg(int descriptor, struct palbe_mmsghdr *messages, unsigned int count, int flags,
                   struct timespec *timeout) __asm__("recvmmsg");
int palbe_sendmmsg(int descriptor, struct palbe_mmsghdr *messages, unsigned int count, int flags) __asm__("sendmmsg");
int palbe_set_affinity(int thread, size_t size, const unsigned long *mask) __asm__("sched_setaffinity");
int palbe_thread_set_name(pthread_t thread, const char *name) __asm__("pthread_setname_np");

// A socket address as numbers: the first and last eight bytes of the address as big-endian numbers (an IPv4 address in
// the upper half of `high`), the port in host order. `mapped` writes an IPv4 address as ::ffff:a.b.c.d.
static inline socklen_t palbe_address_encode(struct sockaddr_storage *out, int is_ipv6, uint64_t high, uint64_t low,
                                             uint16_t port, int mapped) {
  if (!is_ipv6 && !mapped) {
    struct sockaddr_in *address = (struct sockaddr_in *)out;
    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    address->sin_addr.s_addr = htonl((uint32_t)(high >> 32));
    memset(address->sin_zero, 0, sizeof address->sin_zero);
    return sizeof *address;
  }
  struct sockaddr_in6 *address = (struct sockaddr_in6 *)out;
  address->sin6_family = AF_INET6;
  address->sin6_port = htons(port);
  address->sin6_flowinfo = 0;
  address->sin6_scope_id = 0;
  if (!is_ipv6) {
    low = UINT64_C(0x0000ffff00000000) | (high >> 32);
    high = 0;
  }
  for (int index = 0; index < 8; index++) {
    address->sin6_addr.s6_addr[index] = (uint8_t)(high >> (56 - 8 * index));
    address->sin6_addr.s6_addr[index + 8] = (uint8_t)(low >> (56 - 8 * index));
  }
  return sizeof *address;
}

// The reverse; an IPv4 address mapped into IPv6 comes back as IPv4. Returns 4, 6, or 0 for another family.
static inline int palbe_address_decode(const struct sockaddr_storage *in, uint64_t *high, uint64_t *low,
                                       uint16_t *port) {
  *high = 0;
  *low = 0;
  if (in->ss_family == AF_INET) {
    const struct sockaddr_in *address = (const struct sockaddr_in *)in;
    *high = (uint64_t)ntohl(address->sin_addr.s_addr) << 32;
    *port = ntohs(address->sin_port);
    return 4;
  }
  *port = 0;
  if (in->ss_family != AF_INET6) return 0;
  const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)in;
  *port = ntohs(address->sin6_port);
  for (int index = 0; index < 8; index++) {
    *high = *high << 8 | address->sin6_addr.s6_addr[index];
    *low = *low << 8 | address->sin6_addr.s6_addr[index + 8];
  }
  if (*high == 0 && *low >> 32 == 0xffff) {
    *high = *low << 32;
    *low = 0;
    return 4;
  }
  return 6;
}

// The bytes of ancillary data that UDP_SEGMENT needs.
static inline size_t palbe_segment_control_size(void) { return CMSG_SPACE(sizeof(uint16_t)); }

// Makes the kernel cut the message into datagrams of `size` bytes (UDP_SEGMENT, udp(7)).
static inline void palbe_segment_control_set(struct msghdr *message, void *control, uint16_t size) {
  message->msg_control = control;
  message->msg_controllen = CMSG_SPACE(sizeof size);
  struct cmsghdr *header = CMSG_FIRSTHDR(message);
  header->cmsg_level = IPPROTO_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof size);
  memcpy(CMSG_DATA(header), &size, sizeof size);
}

// Socket calls on the storage type, without casts in Swift.
static inline int palbe_bind(int descriptor, const struct sockaddr_storage *address, socklen_t length) {
  return bind(descriptor, (const struct sockaddr *)address, length);
}

static inline int palbe_connect(int descriptor, const struct sockaddr_storage *address, socklen_t length) {
  return connect(descriptor, (const struct sockaddr *)address, length);
}

static inline int palbe_getsockname(int descriptor, struct sockaddr_storage *address, socklen_t *length) {
  return getsockname(descriptor, (struct sockaddr *)address, length);
}

static inline ssize_t palbe_sendto(int descriptor, const void *bytes, size_t count, int flags,
                                   const struct sockaddr_storage *address, socklen_t length) {
  return sendto(descriptor, bytes, count, flags, (const struct sockaddr *)address, length);
}

// Opens a close-on-exec socket; SOCK_ constants are half enum, half macro to Swift.
static inline int palbe_udp_socket(int is_ipv6) {
  return socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static inline int palbe_tcp_socket(int is_ipv6) {
  return socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int palbe_accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags) __asm__("accept4");

// The next connection of a listener as a close-on-exec descriptor that never blocks, or -1.
static inline int palbe_accept(int descriptor, struct sockaddr_storage *address) {
  socklen_t length = sizeof *address;
  return palbe_accept4(descriptor, (struct sockaddr *)address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static inline int palbe_set_nonblocking(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags < 0 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

// The macro SIG_IGN is a cast that Swift cannot import.
static inline void palbe_ignore_signal(int signal_number) { signal(signal_number, SIG_IGN); }

// The highest limit of open descriptors up to `wanted`; returns the limit that holds, or -1.
static inline long palbe_raise_open_files(unsigned long wanted) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  rlim_t target = wanted < limit.rlim_max ? wanted : limit.rlim_max;
  if (limit.rlim_cur < target) {
    limit.rlim_cur = target;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  }
  return (long)limit.rlim_cur;
}

static inline int palbe_getpeername(int descriptor, struct sockaddr_storage *address, socklen_t *length) {
  return getpeername(descriptor, (struct sockaddr *)address, length);
}

// Keeps a thread of this process on one processor, below 64; the calling one for 0.
static inline int palbe_pin_thread(int thread, int processor) {
  unsigned long mask = 1ul << processor;
  return palbe_set_affinity(thread, sizeof mask, &mask);
}

// The clock of the time that a thread of this process spent on a processor (clock_gettime(2)).
static inline clockid_t palbe_thread_clock(int thread) { return (clockid_t)(~(unsigned)thread << 3 | 6); }

// Makes the kernel note when each datagram arrived, on CLOCK_REALTIME.
static inline int palbe_stamp_arrivals(int descriptor) {
  int on = 1;
  return setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

// Receives one datagram and when it arrived, in nanoseconds; -1 when none waits.
static inline ssize_t palbe_receive_stamped(int descriptor, void *bytes, size_t size, int64_t *arrival) {
  char control[128];
  struct iovec vector = {bytes, size};
  struct msghdr message = {0};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count = recvmsg(descriptor, &message, MSG_DONTWAIT);
  if (count < 0) return -1;
  *arrival = 0;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SO_TIMESTAMPNS) continue;
    struct timespec time;
    memcpy(&time, CMSG_DATA(header), sizeof time);
    *arrival = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  }
  return count;
}
