"""A resources server of NeMo-Gym, for its `gymnasium_agent`. nemo_gym.yaml configures both and says
how to install them. Rows of the data set have a field `problem`.
"""

import asyncio
from typing import Any

from resources_servers.gymnasium import GymnasiumServer, extract_text

from kevin_env.episode import Episode
from kevin_env.integrations.judging import process_pool, submit_async
from kevin_env.judge.api import JudgePool
from kevin_env.problem import load_problem


class KevinServer(GymnasiumServer):
    def pool(self) -> JudgePool:
        return process_pool()

    async def reset(
        self, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str, dict[str, Any]]:
        episode = Episode(load_problem(metadata["problem"]), self.pool(), model="nemo-gym")
        self.session_state[session_id] = episode
        return (await asyncio.to_thread(episode.start))[-1].content, {}

    async def step(
        self, action: Any, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        episode = self.session_state[session_id]
        turn = await submit_async(episode, extract_text(action))
        observation = None if episode.done else turn.feedback
        return observation, turn.score, episode.done, False, {"kind": turn.kind}


if __name__ == "__main__":
    KevinServer.run_webserver()
