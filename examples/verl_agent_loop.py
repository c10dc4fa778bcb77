"""An agent loop for verl 0.9: one growing chat an episode, whose reward is the discounted return of
its first turn. train_verl.yaml names it, and says how to start.

Rows of the data set have `agent_name` "kevin" and a column `problem`.
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
from kevin_env.judge.api import JudgePool
from kevin_env.problem import load_problem
from kevin_env.settings import Settings


@register("kevin")
class KevinLoop(AgentLoopBase):
    def __init__(
        self,
        *arguments: Any,
        settings: Settings | None = None,
        pool: JudgePool | str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._settings, self._pool = settings or Settings(max_turns=4), pool

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        episode = Episode(
            load_problem(row["problem"]), process_pool(self._pool), self._settings, model="verl"
        )
        chat = [message.model_dump() for message in await asyncio.to_thread(episode.start)]
        tokens = await self.ct_build_initial_tokens(chat)
        if len(tokens) >= self.rollout_config.prompt_length:  # verl cuts longer ones to this length
            raise ValueError(
                f"the task of {row['problem']} does not fit data.max_prompt_length, "
                f"which is {self.rollout_config.prompt_length}"
            )
        mask: list[int] = []
        logprobs: list[float] | None = []
        session = uuid4().hex
        while True:
            output = await self.server_manager.generate(
                request_id=session, prompt_ids=tokens, sampling_params=sampling_params
            )
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                tokens,
                output.token_ids,
                mask,
                logprobs if output.log_probs else None,
                assistant_logprobs=output.log_probs or None,
            )
            tokens = merged.token_ids
            text = self.tokenizer.decode(output.token_ids, skip_special_tokens=True)
            turn = await submit_async(episode, text)
            if episode.done or len(mask) >= self.rollout_config.response_length:
                break
            before = [*chat, {"role": "assistant", "content": text}]
            chat = [*before, {"role": "user", "content": turn.feedback}]
            merged, mask, logprobs = await self.ct_merge_context_msg(
                before, chat, tokens, mask, logprobs
            )
            tokens = merged.token_ids
        limit = self.rollout_config.response_length
        return AgentLoopOutput(
            prompt_ids=tokens[: len(tokens) - len(mask)],
            response_ids=tokens[len(tokens) - len(mask) :][:limit],
            response_mask=mask[:limit],
            response_logprobs=logprobs[:limit] if logprobs else None,
            reward_score=episode.returns[0],
            num_turns=len(episode.turns) * 2,
            metrics=AgentLoopMetrics(),
            extra_fields={
                "turn_scores": [turn.score for turn in episode.turns],
                "tool_rewards": [],
            },
        )
