"""An agent loop for verl 0.9: one growing chat an episode, whose reward is the discounted return of
its first turn.

Rows of the data set have `agent_name` "kevin" and a column `problem`. verl's configuration has

    actor_rollout_ref.rollout.mode=async
    actor_rollout_ref.rollout.agent.agent_loop_config_path=agent.yaml

with a line `- {name: kevin, _target_: verl_agent_loop.KevinLoop}` in agent.yaml.
"""

import asyncio
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
    register,
)

from kevin_env.episode import Episode
from kevin_env.integrations.judging import process_pool, submit_async
from kevin_env.policies.thinking import make_reply
from kevin_env.problem import load_problem
from kevin_env.settings import Settings


@register("kevin")
class KevinLoop(AgentLoopBase):
    settings = Settings(max_turns=4)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        episode = Episode(load_problem(row["problem"]), process_pool(), self.settings, model="verl")
        chat = [message.model_dump() for message in await asyncio.to_thread(episode.start)]
        tokens, mask, session = await self.ct_build_initial_tokens(chat), [], uuid4().hex
        while True:
            said = await self.server_manager.generate(
                request_id=session, prompt_ids=tokens, sampling_params=sampling_params
            )
            merged, mask, _ = await self.ct_merge_assistant_token(tokens, said.token_ids, mask)
            tokens = merged.token_ids
            text = self.tokenizer.decode(said.token_ids, skip_special_tokens=True)
            turn = await submit_async(episode, make_reply(text))
            if episode.done or len(mask) >= self.rollout_config.response_length:
                break
            before = [*chat, {"role": "assistant", "content": text}]
            chat = [*before, {"role": "user", "content": turn.feedback}]
            merged, mask, _ = await self.ct_merge_context_msg(before, chat, tokens, mask)
            tokens = merged.token_ids
        return AgentLoopOutput(
            prompt_ids=tokens[: len(tokens) - len(mask)],
            response_ids=tokens[len(tokens) - len(mask) :][: self.rollout_config.response_length],
            response_mask=mask[: self.rollout_config.response_length],
            reward_score=episode.returns[0],
            num_turns=len(episode.turns) * 2,
            metrics=AgentLoopMetrics(),
            extra_fields={
                "turn_scores": [turn.score for turn in episode.turns],
                "tool_rewards": [],
            },
        )
