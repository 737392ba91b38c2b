"""A livekit client that publishes a tone and numbered frames, and one that watches a participant."""
import asyncio
import contextlib
import time

import numpy as np
from livekit import rtc
from livekit.rtc._proto import e2ee_pb2

import media

WIDTH, HEIGHT, FRAMES_PER_SECOND = 640, 360, 20


def encryption(passphrase: bytes, hkdf: bool = False) -> rtc.E2EEOptions:
    """A key shared by all, in slot 0; all else as LiveKit has it."""
    options = rtc.KeyProviderOptions(shared_key=passphrase)
    if hkdf:
        options.key_derivation_function = e2ee_pb2.KeyDerivationFunction.HKDF
    return rtc.E2EEOptions(key_provider_options=options)


async def join(url: str, token: str, single: bool = True, auto_subscribe: bool = True, **options) -> rtc.Room:
    """Joins with one peer connection (/rtc/v1), or with two (/rtc)."""
    room = rtc.Room()
    options = rtc.RoomOptions(auto_subscribe=auto_subscribe, single_peer_connection=single, **options)
    await asyncio.wait_for(room.connect(url, token, options), 15)
    return room


@contextlib.asynccontextmanager
async def joined(*arguments, **options):
    """The same for a block."""
    room = await join(*arguments, **options)
    try:
        yield room
    finally:
        await room.disconnect()


class Publisher:
    """Publishes a tone as microphone and numbered frames as camera, or as what `source` says."""

    def __init__(
        self, room: rtc.Room, frequency: float = 440, width: int = WIDTH, height: int = HEIGHT, simulcast: bool = False,
        source=rtc.TrackSource.SOURCE_CAMERA, kinds=("audio", "video"), numbers_frames: bool = False,
    ):
        self.room = room
        self.frequency = frequency
        self.width, self.height = width, height
        self.simulcast = simulcast
        self.source = source
        self.kinds = kinds
        # Each frame has its number and a time behind it, in a packet trailer.
        self.numbers_frames = numbers_frames
        self.audio = rtc.AudioSource(media.SAMPLE_RATE, 1, queue_size_ms=200)
        self.video = rtc.VideoSource(width, height)
        self.sent = 0
        self.tasks = []
        self.publications = {}

    async def start(self):
        local = self.room.local_participant
        if "audio" in self.kinds:
            track = rtc.LocalAudioTrack.create_audio_track("tone", self.audio)
            self.publications["audio"] = await local.publish_track(
                track, rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE))
            self.tasks.append(asyncio.create_task(self.speak()))
        if "video" in self.kinds:
            track = rtc.LocalVideoTrack.create_video_track("numbers", self.video)
            options = rtc.TrackPublishOptions(
                source=self.source, simulcast=self.simulcast, video_codec=rtc.VideoCodec.VP8)
            if self.numbers_frames:
                options.frame_metadata_features.extend([rtc.FrameMetadataFeature.FMF_USER_TIMESTAMP, rtc.FrameMetadataFeature.FMF_FRAME_ID])
            self.publications["video"] = await local.publish_track(track, options)
            self.tasks.append(asyncio.create_task(self.show()))

    async def speak(self):
        start = 0
        while True:
            block = media.tone_block(start, 480, self.frequency)
            await self.audio.capture_frame(rtc.AudioFrame(block.tobytes(), media.SAMPLE_RATE, 1, 480))
            start += 480

    async def show(self):
        begun = time.monotonic()
        while True:
            picture = media.numbered_frame(self.sent, self.width, self.height)
            metadata = None
            if self.numbers_frames:
                metadata = rtc.FrameMetadata(user_timestamp=1_000_000 + self.sent, frame_id=self.sent + 1)
            self.video.capture_frame(
                rtc.VideoFrame(self.width, self.height, rtc.VideoBufferType.I420, picture),
                timestamp_us=int(time.monotonic() * 1e6), metadata=metadata)
            self.sent += 1
            await asyncio.sleep(max(0, begun + self.sent / FRAMES_PER_SECOND - time.monotonic()))

    async def unpublish(self):
        for publication in self.publications.values():
            await self.room.local_participant.unpublish_track(publication.sid)
        self.publications = {}
        await self.stop()

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []

    async def __aenter__(self):
        await self.start()
        return self

    async def __aexit__(self, *_):
        await self.stop()


class Watcher:
    """Collects what is received of one participant: frame numbers, widths, samples."""

    def __init__(self, room: rtc.Room, identity: str, read=media.read_number):
        self.identity = identity
        self.read = read
        self.numbers: list[int] = []
        # What came with the pictures, see Publisher.
        self.metadata: list = []
        self.widths: list[int] = []
        self.samples: list[np.ndarray] = []
        self.tasks = []
        self.room = room
        room.on("track_subscribed", self.subscribed)
        participant = room.remote_participants.get(identity)
        for publication in participant.track_publications.values() if participant else ():
            if publication.track is not None:
                self.subscribed(publication.track, publication, participant)

    def subscribed(self, track, publication, participant):
        if participant.identity != self.identity:
            return
        if track.kind == rtc.TrackKind.KIND_VIDEO:
            self.tasks.append(asyncio.create_task(self.watch(track)))
        else:
            self.tasks.append(asyncio.create_task(self.listen(track)))

    async def watch(self, track):
        async for event in rtc.VideoStream(track, format=rtc.VideoBufferType.I420):
            frame = event.frame
            luma = np.frombuffer(frame.data, np.uint8)[: frame.width * frame.height]
            self.widths.append(frame.width)
            if event.metadata is not None:
                self.metadata.append(event.metadata)
            self.numbers.append(self.read(luma.reshape(frame.height, frame.width)))

    async def listen(self, track):
        # Of one track at a time: an old one may go on with silence.
        self.samples = samples = []
        async for event in rtc.AudioStream(track, sample_rate=media.SAMPLE_RATE, num_channels=1):
            samples.append(np.frombuffer(event.frame.data, np.int16).copy())

    def last_second(self) -> np.ndarray:
        return np.concatenate(self.samples)[-media.SAMPLE_RATE :] if self.samples else np.zeros(0, np.int16)

    def publication(self, kind=rtc.TrackKind.KIND_VIDEO) -> rtc.RemoteTrackPublication | None:
        """What the participant has published of a kind, subscribed or not."""
        participant = self.room.remote_participants.get(self.identity)
        publications = participant.track_publications.values() if participant else ()
        return next((publication for publication in publications if publication.kind == kind), None)

    @property
    def width(self) -> int:
        """Of the last picture; 0 before the first."""
        return self.widths[-1] if self.widths else 0

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.stop()
