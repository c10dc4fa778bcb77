"""The most likely path of hidden states through a hidden Markov model (Viterbi), with integer log-scores, in a batch.

    D[b, 0, j] = initial[j] + emissions[b, 0, j]
    D[b, t, j] = max over i of (D[b, t-1, i] + transitions[i, j]) + emissions[b, t, j]
    B[b, t, j] = the smallest i for which that maximum is reached
    score[b] = max over j of D[b, steps-1, j],    path[b, steps-1] = the smallest j for which it is reached
    path[b, t-1] = B[b, t, path[b, t]]

emissions (batch_size, steps, states), transitions (states, states) and initial (states,) are int32, contiguous, between
-score_range and score_range; no sum leaves int32. `forward` returns the tuple (path, score): path (batch_size, steps),
int64, and score (batch_size,), int32. batch_size, steps, states and score_range vary between cases; in one of them
scores are so coarse that most maxima are tied. There are no parameters.
"""

import torch
import torch.nn as nn

batch_size = 1024
steps = 48
states = 128
score_range = 10_000

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 32, "states": 48},
    "odd": {"batch_size": 15, "steps": 29, "states": 31},
    "tied": {"batch_size": 8, "steps": 20, "states": 20, "score_range": 2},
    "single": {"batch_size": 1, "steps": 33, "states": 300},
}
TAGS: tuple[str, ...] = ("dynamic-programming", "signal", "recurrent")


class Model(nn.Module):
    def forward(
        self, emissions: torch.Tensor, transitions: torch.Tensor, initial: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        best = initial + emissions[:, 0]
        origins = []
        for step in range(1, emissions.shape[1]):
            # among equal maxima, `max` gives the first
            best, origin = (best[:, :, None] + transitions).max(dim=1)
            best = best + emissions[:, step]
            origins.append(origin)
        score, state = best.max(dim=1)
        path = [state[:, None]]
        for origin in reversed(origins):
            path.append(origin.gather(1, path[-1]))
        return torch.cat(path[::-1], dim=1), score


def get_inputs() -> list[torch.Tensor]:
    shapes = [(batch_size, steps, states), (states, states), (states,)]
    scores = [torch.randint(-score_range, score_range + 1, shape, dtype=torch.int32) for shape in shapes]
    scores[0] //= torch.randint(1, 5, (batch_size, 1, 1), dtype=torch.int32)  # some sequences tell more than others
    return scores


def get_init_inputs() -> list:
    return []
