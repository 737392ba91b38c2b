"""What tests ask of what they saw, and how they wait for it."""
import asyncio
import pathlib
import wave

import hosts
import media

FILE_FRAMES = 120
PASSPHRASE = "correct horse pässwörd".encode()


async def until(condition, seconds: float, what: str):
    end = hosts.deadline(seconds)
    loop = asyncio.get_running_loop()
    while not condition():
        assert loop.time() < end, f"{what} did not happen within {seconds} s"
        await asyncio.sleep(0.05)


def check_numbers(numbers: list[int], least: int, what: str):
    """In order, none twice, and readable all but a few: a picture in transition may blur a bar."""
    readable = [number for number in numbers if number >= 0]
    assert len(readable) >= least, f"{what}: {len(readable)} readable frames of {len(numbers)}, expected at least {least}"
    late = [pair for pair in zip(readable, readable[1:]) if pair[1] <= pair[0]]
    assert not late, f"{what}: frames out of order or repeated: {late[:3]}"


def check_looping_numbers(numbers: list[int], least: int, what: str, loops: int = 0):
    """The same of a file that loops: its numbers start again, all other steps go forward."""
    readable = [number for number in numbers if number >= 0]
    assert len(readable) >= least, f"{what}: {len(readable)} readable frames of {len(numbers)}, expected at least {least}"
    backward = sum(b <= a for a, b in zip(readable, readable[1:]))
    assert backward <= len(readable) // FILE_FRAMES + 1 + loops, f"{what}: {backward} steps backward"


def check_tone(samples, frequency: float, what: str):
    heard = media.dominant_frequency(samples)
    assert abs(heard - frequency) < 5, f"{what}: heard {heard:.1f} Hz, expected {frequency} Hz"


def write_sources(folder: pathlib.Path, noise: int = 0):
    """tone.wav with 880 Hz and numbers.y4m with numbered frames at 30 a second."""
    with wave.open(str(folder / "tone.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(media.SAMPLE_RATE)
        file.writeframes(media.tone_block(0, 4 * media.SAMPLE_RATE, 880).tobytes())
    with open(folder / "numbers.y4m", "wb") as file:
        file.write(b"YUV4MPEG2 W640 H360 F30:1 Ip A1:1 C420jpeg\n")
        for number in range(FILE_FRAMES):
            file.write(b"FRAME\n" + media.numbered_frame(number, 640, 360, noise))


def check_recording(record: pathlib.Path, least: int, frequency: float) -> list[int]:
    """What `palbe-call --record` wrote of one participant; the numbers of its pictures."""
    videos = sorted(record.glob("*.y4m"))
    sounds = sorted(record.glob("*.wav"))
    assert videos and sounds, f"palbe-call recorded {[path.name for path in record.iterdir()]}"
    numbers = [media.read_number(luma) for luma in media.read_y4m(videos[0])]
    samples = media.read_wav(sounds[0])
    assert len(samples) > 2 * media.SAMPLE_RATE, f"palbe-call recorded {len(samples)} samples"
    middle = len(samples) // 2
    check_tone(samples[middle - 24_000 : middle + 24_000], frequency, "palbe-call")
    assert sum(number >= 0 for number in numbers) >= least, f"palbe-call: {len(numbers)} pictures"
    return numbers
