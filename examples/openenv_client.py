"""A model plays an episode on an OpenEnv server, by messages or, with --tools, by MCP tools.

kevin-env serve
OPENAI_API_KEY=... python examples/openenv_client.py MODEL [--base-url URL] [--server URL] [--tools]

Prints the return of each turn. Needs pip install '.[openenv]', or only the client: pip install
./kevin_env/integrations/openenv, and `kernel_env` for `kevin_env.integrations.openenv` below.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

from openai import OpenAI
from openenv.core.mcp_client import MCPToolClient

from kevin_env.integrations.openenv import KernelAction, KernelEnv

Messages = list[dict[str, Any]]


def samples(
    env: Any, policy: Callable[[Messages], str], **task: Any
) -> Iterator[tuple[Messages, str, float]]:
    """Plays an episode. Prompt, reply and discounted return of each turn, one training sample."""
    result = env.reset(**task)  # problem_id="L1_23_Softmax"; split="L1", index=3; seed=0
    played = []
    while not result.done:
        prompt = result.observation.messages  # the whole chat of this turn
        reply = policy(prompt)
        result = env.step(KernelAction(code=reply))  # the whole reply, or a Python file
        played.append((prompt, reply))
    for (prompt, reply), value in zip(played, result.observation.returns, strict=True):
        yield prompt, reply, value


def play_by_tools(env: Any, complete: Callable[..., Any], **task: Any) -> Iterator[dict[str, Any]]:
    """Lets a model call the tools of the server until it stops; the results of its turns."""
    env.reset(**task)
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
            },
        }
        for tool in env.list_tools()
    ]
    messages: Messages = [{"role": "user", "content": "Call get_problem, and solve it."}]
    while calls := (answer := complete(messages=messages, tools=tools)).tool_calls:
        messages.append(answer.model_dump(exclude_none=True))
        for call in calls:
            try:
                result = env.call_tool(call.function.name, **json.loads(call.function.arguments))
            except (RuntimeError, ValueError) as error:
                result = {"error": str(error)}
            if "score" in result:
                yield result
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)}
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Let a model play on an OpenEnv server.")
    parser.add_argument("model")
    parser.add_argument("--base-url")
    parser.add_argument("--server", default="http://localhost:8000")
    parser.add_argument("--tools", action="store_true")
    args = parser.parse_args()
    chat = OpenAI(base_url=args.base_url).chat.completions

    def complete(**request: Any) -> Any:
        return chat.create(model=args.model, **request).choices[0].message

    if args.tools:
        with MCPToolClient(base_url=args.server, message_timeout_s=960).sync() as env:
            for turn in play_by_tools(env, complete, seed=0):
                print(f"turn {turn['turn']}: {turn['category']}, score {turn['score']:.2f}")
    else:
        with KernelEnv(base_url=args.server) as env:
            turns = samples(env, lambda messages: complete(messages=messages).content, seed=0)
            for number, (_, _, value) in enumerate(turns, 1):
                print(f"turn {number}: return {value:.2f}")


if __name__ == "__main__":
    main()
