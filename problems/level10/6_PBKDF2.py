"""PBKDF2 with HMAC-SHA256 (RFC 8018): a long key from one password and one salt.

    derived_key = T_1 || T_2 || ..., cut off after dk_len bytes
    T_i = U_1 ^ U_2 ^ ... ^ U_iterations
    U_1 = HMAC(password, salt || i as 4 big-endian bytes),    U_j = HMAC(password, U_{j - 1})
    HMAC(key, text) = SHA-256((key ^ 0x5c5c...) || SHA-256((key ^ 0x3636...) || text)), key with zeros up to 64 bytes

password is (password_length,), at most 64; salt is (salt_length,), at most 51, so that one block holds it; derived_key
is (dk_len,). All are int64, one byte in [0, 256) per element, and contiguous. The constructor takes iterations and
dk_len. There are no parameters. All four numbers vary between cases. The T_i do not depend on each other.
Differs from kernrl: real HMAC-SHA256, where kernrl has a stand-in; a long key of few iterations instead of the reverse.
"""

import torch
import torch.nn as nn

password_length = 16
salt_length = 16
iterations = 2
dk_len = 32 * 2**17

CASES: dict[str, dict] = {
    "cpu": {"dk_len": 10_000, "iterations": 3},
    "odd": {"password_length": 63, "salt_length": 51, "dk_len": 1021},
    "single": {"password_length": 5, "salt_length": 8, "dk_len": 20, "iterations": 5},
}
TAGS: tuple[str, ...] = ("crypto", "recurrent")

# fmt: off
K = (
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
)
H0 = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)
# fmt: on
MASK = 2**32 - 1
TWICE = 2**32 + 1
"""A word times TWICE is the word twice in a row: the lower half of that, shifted right, is the word rotated right. What
is left in the upper half is masked away before it matters."""


class Model(nn.Module):
    def __init__(self, iterations: int = 1000, dk_len: int = 32):
        super().__init__()
        self.iterations, self.dk_len = iterations, dk_len
        self.register_buffer("K", torch.tensor(K), persistent=False)
        self.register_buffer("H0", torch.tensor(H0), persistent=False)
        self.register_buffer("rotations", torch.tensor([6, 2, 11, 13, 25, 22]).view(3, 2, 1), persistent=False)

    def schedule(self, words: torch.Tensor) -> torch.Tensor:
        """From the 16 words of each block, (16, n), to what its 64 rounds add, (64, n)."""
        w = torch.cat([words, words.new_empty(48, words.shape[1])])
        for t in range(16, 64, 2):
            x, y = w[t - 15 : t - 13], w[t - 2 : t]
            s0 = (x * TWICE >> 7) ^ (x * TWICE >> 18) ^ (x >> 3)
            s1 = (y * TWICE >> 17) ^ (y * TWICE >> 19) ^ (y >> 10)
            w[t : t + 2] = (w[t - 16 : t - 14] + s0 + w[t - 7 : t - 5] + s1) & MASK
        return w + self.K[:, None]

    def compress(self, state: torch.Tensor, schedule: torch.Tensor) -> torch.Tensor:
        """The state, (8, n), after one more block."""
        a, b, c, d, e, f, g, h = state.expand(8, schedule.shape[1]).unbind()
        for added in schedule.unbind():
            turned = torch.stack([e, a]) * TWICE >> self.rotations
            sum1, sum0 = (turned[0] ^ turned[1] ^ turned[2]).unbind()
            t1 = h + sum1 + (g ^ (e & (f ^ g))) + added
            t2 = sum0 + ((a & b) | (c & (a | b)))
            a, b, c, d, e, f, g, h = (t1 + t2) & MASK, a, b, c, (d + t1) & MASK, e, f, g
        return (state + torch.stack([a, b, c, d, e, f, g, h])) & MASK

    def digest(self, state: torch.Tensor, message: torch.Tensor) -> torch.Tensor:
        """SHA-256 over 64 bytes that led to `state` and a short message, (bytes, n); (32, n) bytes."""
        padding = message.new_zeros(64 - len(message), 1)
        padding[0] = 0x80
        padding[-8:, 0] = message.new_tensor(list((8 * (64 + len(message))).to_bytes(8, "big")))
        b0, b1, b2, b3 = torch.cat([message, padding.expand(-1, message.shape[1])]).view(16, 4, -1).unbind(1)
        words = self.compress(state, self.schedule(b0 << 24 | b1 << 16 | b2 << 8 | b3))
        return torch.stack([words >> shift & 255 for shift in (24, 16, 8, 0)], 1).flatten(0, 1)

    def forward(self, password: torch.Tensor, salt: torch.Tensor) -> torch.Tensor:
        key = torch.cat([password, password.new_zeros(64 - len(password))])
        b0, b1, b2, b3 = torch.stack([key ^ 0x36, key ^ 0x5C], 1).view(16, 4, 2).unbind(1)
        keyed = self.compress(self.H0[:, None], self.schedule(b0 << 24 | b1 << 16 | b2 << 8 | b3))
        inner, outer = keyed[:, :1], keyed[:, 1:]
        number = torch.arange(1, -(-self.dk_len // 32) + 1, device=salt.device)
        index = torch.stack([number >> shift & 255 for shift in (24, 16, 8, 0)])
        text = torch.cat([salt[:, None].expand(-1, len(number)), index])
        total = 0
        for _ in range(self.iterations):
            text = self.digest(outer, self.digest(inner, text))
            total = text ^ total
        return total.T.flatten()[: self.dk_len]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 256, (length,)) for length in (password_length, salt_length)]


def get_init_inputs() -> list:
    return [iterations, dk_len]
