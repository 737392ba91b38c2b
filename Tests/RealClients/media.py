"""Media that can be recognised at the other end: a tone, and frames that carry their number."""
import wave

import numpy as np

SAMPLE_RATE = 48_000
BITS = 16


def tone_block(start: int, count: int, frequency: float) -> np.ndarray:
    """`count` samples of a sine at half scale, from sample `start`, as int16."""
    time = np.arange(start, start + count) / SAMPLE_RATE
    return (16_384 * np.sin(2 * np.pi * frequency * time)).astype(np.int16)


def dominant_frequency(samples: np.ndarray) -> float:
    """The strongest frequency in hertz; 0 for silence."""
    if len(samples) < 4_800 or np.max(np.abs(samples)) < 200:
        return 0.0
    window = samples.astype(np.float64) * np.hanning(len(samples))
    spectrum = np.abs(np.fft.rfft(window))
    return float(np.argmax(spectrum)) * SAMPLE_RATE / len(samples)


def numbered_frame(number: int, width: int, height: int, noise: int = 0) -> bytes:
    """An I420 picture: the top half is sixteen bars, one a bit; the bottom half is a moving ramp, with noise if wanted."""
    luma = np.empty((height, width), np.uint8)
    bar = width // BITS
    for bit in range(BITS):
        luma[: height // 2, bit * bar : (bit + 1) * bar] = 224 if number >> bit & 1 else 32
    luma[: height // 2, BITS * bar :] = 128
    ramp = (np.arange(width) + 3 * number) % 256
    luma[height // 2 :, :] = ramp.astype(np.uint8)
    if noise:
        grain = np.random.default_rng(number).integers(0, noise, (height - height // 2, width), np.uint8)
        luma[height // 2 :, :] = luma[height // 2 :, :] // 2 + grain
    chroma = np.full(width * height // 2, 128, np.uint8)
    return luma.tobytes() + chroma.tobytes()


def read_number(luma: np.ndarray) -> int:
    """The number of a decoded picture's luma plane, or -1 when a bar is neither dark nor bright."""
    height, width = luma.shape
    bar = width // BITS
    number = 0
    for bit in range(BITS):
        patch = luma[height // 8 : height // 2 - height // 8, bit * bar + bar // 4 : (bit + 1) * bar - bar // 4]
        mean = float(patch.mean())
        if 96 < mean < 160:
            return -1
        number |= (mean >= 160) << bit
    return number


def read_wav(path) -> np.ndarray:
    """The first channel of a 16-bit WAV file."""
    with wave.open(str(path)) as file:
        assert file.getsampwidth() == 2, f"{path}: {file.getsampwidth()} bytes a sample, expected 2"
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return samples[:: file.getnchannels()]


def read_y4m(path):
    """The luma planes of a Y4M file, one after another."""
    with open(path, "rb") as file:
        header = file.readline().split()
        assert header[0] == b"YUV4MPEG2", f"{path}: not a Y4M file"
        width = next(int(field[1:]) for field in header if field[:1] == b"W")
        height = next(int(field[1:]) for field in header if field[:1] == b"H")
        while file.readline():
            luma = file.read(width * height)
            file.read(2 * ((width + 1) // 2) * ((height + 1) // 2))
            if len(luma) < width * height:
                return
            yield np.frombuffer(luma, np.uint8).reshape(height, width)
