"""Level 10: each reference against a published vector, the standard library, or plain Python
integers.
"""

import hashlib
import itertools
import zlib
from typing import Any

import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from test_problem_files import call, small


def rows(tensor: torch.Tensor) -> list[bytes]:
    return [bytes(row) for row in tensor.tolist()]


def big_endian(words: torch.Tensor) -> bytes:
    return b"".join(word.to_bytes(4, "big") for word in words.tolist())


def numbers(data: bytes, size: int) -> torch.Tensor:
    """Little-endian words of so many bytes; of 8 bytes, with the sign that int64 gives their bits."""
    words = [data[i : i + size] for i in range(0, len(data), size)]
    return torch.tensor([int.from_bytes(word, "little", signed=size == 8) for word in words])


@pytest.mark.parametrize("length", [0, 55, 56, 375])
def test_sha256_of_one_message(length: int) -> None:
    model, (message,) = small("L10_1_SHA256_Single", message_length=length)
    assert big_endian(call(model, [message])[0]) == hashlib.sha256(bytes(message.tolist())).digest()


@pytest.mark.parametrize("length", [1, 64, 130])
def test_sha256_of_a_batch(length: int) -> None:
    model, (messages,) = small("L10_2_SHA256_Batch", batch_size=5, message_length=length)
    assert [big_endian(row) for row in call(model, [messages])[0]] == [
        hashlib.sha256(message).digest() for message in rows(messages)
    ]


@pytest.mark.parametrize("count", [2, 3, 8, 13])
def test_merkle_root(count: int) -> None:
    model, (leaves,) = small("L10_3_MerkleTreeRoot", num_leaves=count)
    level = rows(leaves)
    while len(level) & (len(level) - 1):
        level.append(bytes(32))
    while len(level) > 1:
        level = [
            hashlib.sha3_256(left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=True)
        ]
    assert bytes(call(model, [leaves])[0].tolist()) == level[0]


def test_aes_of_many_blocks() -> None:
    model, (text, key) = small("L10_4_AES_ECB", text_length=16 * 50)
    encryptor = Cipher(algorithms.AES(bytes(key.tolist())), modes.ECB()).encryptor()
    assert bytes(call(model, [text, key])[0].tolist()) == encryptor.update(bytes(text.tolist()))


def test_chacha20_of_many_blocks() -> None:
    model, inputs = small("L10_5_ChaCha20", num_blocks=20)
    key, nonce = (
        b"".join(word.to_bytes(4, "little") for word in words.tolist()) for words in inputs[:2]
    )
    for number, block in zip(inputs[2].tolist(), call(model, inputs)[0].tolist(), strict=True):
        cipher = Cipher(
            algorithms.ChaCha20(key, number.to_bytes(4, "little") + nonce), None
        ).encryptor()
        assert cipher.update(bytes(64)) == b"".join(word.to_bytes(4, "little") for word in block)


@pytest.mark.parametrize(("password", "salt", "length"), [(1, 51, 100), (64, 8, 32), (7, 1, 33)])
def test_pbkdf2(password: int, salt: int, length: int) -> None:
    sizes: dict[str, Any] = {"password_length": password, "salt_length": salt, "dk_len": length}
    model, inputs = small("L10_6_PBKDF2", iterations=3, **sizes)
    secret, grain = (bytes(value.tolist()) for value in inputs)
    assert bytes(call(model, inputs)[0].tolist()) == hashlib.pbkdf2_hmac(
        "sha256", secret, grain, 3, length
    )


# The official BLAKE3 test vectors: input byte i is i mod 251; the first 32 bytes of the hash by
# length.
BLAKE3 = {
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
    31744: "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47",
}


@pytest.mark.parametrize("length", BLAKE3)
def test_blake3_meets_the_official_vectors(length: int) -> None:
    model, _ = small("L10_7_Blake3", message_length=length)
    assert bytes(call(model, [torch.arange(length) % 251])[0].tolist()).hex() == BLAKE3[length]


def integer(limbs: torch.Tensor) -> int:
    return sum((limb % 2**64) << (64 * i) for i, limb in enumerate(limbs.tolist()))


def power(model: torch.nn.Module, base: int, exponent: int, modulus: int, size: int) -> int:
    limbs = [numbers(value.to_bytes(size // 8, "little"), 8) for value in (base, exponent, modulus)]
    return integer(call(model, limbs)[0])


def test_modular_power_at_the_edges() -> None:
    model, _ = small("L10_8_ModularExponentiation", num_bits=128)
    top, least = 2**128 - 1, 2**128 - 2**64 + 1
    cases = [
        (0, 5, least), (7, 0, top), (top, top, least), (least - 1, top, least), (least, 1, least),
        (top, 1, top),
    ]  # fmt: skip
    cases += [(top - 1, 3, top), (2, 2**127, least), (2**64, 2, least + 0x0123456789ABCDEE)]
    for base, exponent, modulus in cases:
        assert power(model, base, exponent, modulus, 128) == pow(base, exponent, modulus)


@pytest.mark.parametrize("length", [1, 128, 129, 300])
def test_blake2b(length: int) -> None:
    model, (messages,) = small("L10_9_BLAKE2b_Batch", batch_size=5, message_length=length)
    assert rows(call(model, [messages])[0]) == [
        hashlib.blake2b(message).digest() for message in rows(messages)
    ]


@pytest.mark.parametrize(("length", "output"), [(1, 1), (167, 168), (168, 169), (400, 500)])
def test_shake128(length: int, output: int) -> None:
    model, (messages,) = small(
        "L10_10_SHAKE128_Batch", batch_size=5, message_length=length, output_length=output
    )
    assert rows(call(model, [messages])[0]) == [
        hashlib.shake_128(message).digest(output) for message in rows(messages)
    ]


def test_crc32() -> None:
    model, (messages,) = small("L10_11_CRC32_Batch", batch_size=20, message_length=70)
    assert call(model, [messages])[0].tolist() == [
        zlib.crc32(message) for message in rows(messages)
    ]


def field_product(a: int, b: int) -> int:
    """In GF(256) modulo 0x11D: schoolbook multiplication, then long division."""
    product = 0
    for bit in range(8):
        product ^= (a << bit) * (b >> bit & 1)
    for bit in range(14, 7, -1):
        product ^= (0x11D << (bit - 8)) * (product >> bit & 1)
    return product


def test_syndromes_are_the_word_at_powers_of_alpha() -> None:
    model, (words,) = small(
        "L10_12_ReedSolomon_Syndromes", batch_size=2, codeword_length=30, num_syndromes=11
    )
    syndromes = call(model, [words])[0].tolist()
    alpha = list(itertools.accumulate([2] * 300, field_product, initial=1))
    for word, found in zip(words.tolist(), syndromes, strict=True):
        for j, syndrome in enumerate(found):
            for i, value in enumerate(word):
                syndrome ^= field_product(value, alpha[j * (29 - i)])
            assert syndrome == 0


def best_local_score(first: list[int], second: list[int]) -> int:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, j in itertools.product(range(1, len(first) + 1), range(1, len(second) + 1)):
        step = 2 if first[i - 1] == second[j - 1] else -1
        table[i][j] = max(0, table[i - 1][j - 1] + step, table[i - 1][j] - 2, table[i][j - 1] - 2)
    return max(map(max, table))


def test_smith_waterman() -> None:
    model, (first, second) = small(
        "L10_13_SmithWaterman_Scores", batch_size=12, first_length=30, second_length=37
    )
    scores = [best_local_score(*pair) for pair in zip(first.tolist(), second.tolist(), strict=True)]
    assert min(scores) < 20 < 40 < max(scores), "some pairs are related, others hardly"
    assert call(model, [first, second])[0].tolist() == scores


@pytest.mark.parametrize("length", [2, 32])
def test_number_theoretic_transform(length: int) -> None:
    model, (x,) = small("L10_14_NumberTheoreticTransform", batch_size=3, length=length)
    prime = 998244353
    root = pow(3, (prime - 1) // length, prime)
    assert len({pow(root, i, prime) for i in range(length)}) == length
    sums = [
        [sum(v * pow(root, j * k, prime) for j, v in enumerate(row)) % prime for k in range(length)]
        for row in x.tolist()
    ]
    assert call(model, [x])[0].tolist() == sums
