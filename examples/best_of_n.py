"""In every turn, N replies are judged concurrently, and the episode continues with the best.

OPENAI_API_KEY=... python examples/best_of_n.py MODEL [--base-url URL] [--problem ID]
[--max-turns T] [--n N]

`Episode.fork` copies the conversation for each reply. The pool judges them at the same time, but
measures one by one.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor

from kevin_env.episode import Episode
from kevin_env.policies import OpenAIPolicy, Policy, for_sample
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem
from kevin_env.settings import Settings


def main() -> None:
    parser = argparse.ArgumentParser(description="Continue with the best of N replies.")
    parser.add_argument("model")
    parser.add_argument("--base-url")
    parser.add_argument("--problem", default="L1_36_RMSNorm_")
    parser.add_argument("--max-turns", type=int, default=4)
    parser.add_argument("--n", type=int, default=4)
    args = parser.parse_args()
    policy = OpenAIPolicy(args.model, args.base_url)
    with LocalPool() as pool:
        episode = Episode(
            load_problem(args.problem), pool, Settings(max_turns=args.max_turns), model=policy.name
        )
        episode.start()
        while not episode.done:
            episode = best_of(episode, policy, args.n)
    print("returns", [round(value, 2) for value in episode.returns])


def best_of(episode: Episode, policy: Policy, n: int) -> Episode:
    """The fork of the episode with the best next turn."""
    forks = [episode.fork(sample) for sample in range(n)]
    with ThreadPoolExecutor(n) as threads:
        replies = threads.map(
            lambda sample: for_sample(policy, sample).reply(episode.messages), range(n)
        )
        judged = [fork.submit_later(reply) for fork, reply in zip(forks, replies, strict=True)]
        turns = [future.result() for future in judged]
    print(
        f"turn {turns[0].turn}:",
        ", ".join(f"{turn.category}/{turn.kind} {turn.score:.2f}" for turn in turns),
    )
    return max(forks, key=lambda fork: fork.turns[-1].score)


if __name__ == "__main__":
    main()
