"""A model behind an OpenAI-compatible endpoint refines a kernel, turn by turn.

OPENAI_API_KEY=... python examples/api_model.py MODEL [--base-url URL] [--problem ID]
[--max-turns T] [--out FILE]

Replies are printed as they come, and the episode is recorded for `kevin-env replay`. A server of
your own (vLLM, SGLang, llama.cpp, Ollama) needs no key.
"""

import argparse
import sys
from pathlib import Path

from kevin_env.episode import Episode
from kevin_env.outcome import printable
from kevin_env.policies import OpenAIPolicy, PolicyError
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings


def main() -> None:
    parser = argparse.ArgumentParser(description="Let a model refine a kernel.")
    parser.add_argument("model")
    parser.add_argument("--base-url")
    parser.add_argument("--problem", default="L1_36_RMSNorm_")
    parser.add_argument("--max-turns", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("trajectories.jsonl"))
    args = parser.parse_args()
    problem, settings = load_problem(args.problem), Settings(max_turns=args.max_turns)
    try:
        policy = OpenAIPolicy(args.model, args.base_url)
        with LocalPool() as pool:
            episode = Episode(
                problem, pool, settings, recorder=Recorder(args.out), model=policy.name
            )
            play(episode, policy)
    except PolicyError as error:
        sys.exit(f"no reply: {error}")


def play(episode: Episode, policy: OpenAIPolicy) -> None:
    episode.start()
    try:
        while not episode.done:
            reply = policy.reply(
                episode.messages, lambda text: print(printable(text), end="", flush=True)
            )
            turn = episode.submit(reply)
            print(
                f"\n--- turn {turn.turn}: {turn.category}/{turn.kind}, "
                f"score {turn.score:.2f}. {turn.outcome.message}"
            )
    except PolicyError as error:
        episode.finish(error.stop_reason)
        raise
    print("returns", [round(value, 2) for value in episode.returns])


if __name__ == "__main__":
    main()
