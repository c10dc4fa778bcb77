"""You are the policy: read the task, write the kernel, see how it did.

python examples/human.py [PROBLEM]

Each turn takes the path of a .py file, `edit` for $EDITOR, or a typed reply. Ctrl-D ends the
episode.
"""

import argparse

from kevin_env.episode import Episode
from kevin_env.policies import HumanPolicy, Quit
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem
from kevin_env.settings import Settings


def main() -> None:
    parser = argparse.ArgumentParser(description="You are the policy.")
    parser.add_argument("problem", nargs="?", default="L1_26_GELU_")
    problem = load_problem(parser.parse_args().problem)
    person = HumanPolicy()
    with LocalPool() as pool:
        episode = Episode(problem, pool, Settings(max_turns=4), model=person.name)
        episode.start()
        while not episode.done:
            try:
                turn = episode.submit(person.reply(episode.messages))
            except Quit:
                episode.finish("interrupted")
            else:
                print(turn.feedback)
    print(f"{episode.stop_reason}: returns {[round(value, 2) for value in episode.returns]}")


if __name__ == "__main__":
    main()
