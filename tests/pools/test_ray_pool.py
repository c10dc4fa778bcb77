"""A pool on a Ray cluster of several node processes on this machine."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from corpus import FOLDER
from judges import QUICK
from processes import descendants, outlived, wait_for

ray = pytest.importorskip("ray", reason="needs the extra ray")

import yaml  # noqa: E402
from ray.autoscaler._private.util import prepare_config, validate_config  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from ray.util import list_named_actors  # noqa: E402
from ray_doubles import Broken, Double, Unlike  # noqa: E402

from kevin_env.judge import JudgeError, Judgement, Options, Submission  # noqa: E402
from kevin_env.pools.base import RequestPool  # noqa: E402
from kevin_env.pools.http import named_pool  # noqa: E402
from kevin_env.pools.local import LocalPool  # noqa: E402
from kevin_env.pools.ray_pool import RayPool, RaySettings, join_cluster  # noqa: E402
from kevin_env.problem import Problem, ProblemError, load_problem  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("ray")]
PROBLEM = Problem(id="p", name="p", source="x = 1\n")
SOFTMAX = load_problem(str(FOLDER / "problems/softmax.py"))
HEAD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
TYPES = ("H100", "A100")
Start = Callable[..., RayPool]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head that judges nothing, and two nodes, each with a GPU that does not exist."""
    with (
        # the tests' own is too long for Ray's sockets
        tempfile.TemporaryDirectory(
            prefix="ray-",
            dir="/tmp",
            ignore_cleanup_errors=True,  # some of Ray may still write
        ) as folder,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("RAY_TMPDIR", folder)
        environment.setenv("RAY_AUTH_MODE", "disabled")
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        for name in TYPES:
            add_node(cluster, num_gpus=1, resources={f"accelerator_type:{name}": 1})
        path = os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[1])))
        environment_of_workers = {"env_vars": {"PYTHONPATH": path}}
        ray.init(
            cluster.address, namespace="tests", runtime_env=environment_of_workers,
            log_to_driver=False, logging_level="ERROR",
        )  # fmt: skip
        yield cluster
        ray.shutdown()
        cluster.shutdown()


def add_node(cluster: Cluster, **more: Any) -> Any:
    return cluster.add_node(num_cpus=4, object_store_memory=100 << 20, **more)


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Start]:
    with ExitStack() as pools:

        def opened(open_judge: Callable[[str], RequestPool] = Double, **settings: Any) -> RayPool:
            return pools.enter_context(RayPool(RaySettings(**settings), open_judge))

        yield opened
    deadline = time.monotonic() + 30
    while list_named_actors() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list_named_actors(), "judges end with the pool that started them"


def begin(pool: RayPool, code: str = "", device: str = "cpu") -> Future[Judgement]:
    return pool.submit(PROBLEM, Submission(code=code), Options(device=device))


def under_way(pool: RayPool, code: str) -> Future[Judgement]:
    """The same, once a judge has it."""
    with tempfile.TemporaryDirectory() as folder:
        judging, deadline = begin(pool, f"{code} {folder}/begun"), time.monotonic() + 60
        while not any(Path(folder).iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    return judging


def judges_of(futures: list[Future[Judgement]]) -> list[str]:
    """The processes that judged."""
    return [future.result(60).device.versions["process"] for future in futures]


def test_a_real_judge_on_another_node(start: Start) -> None:
    pool = start(lambda device: LocalPool(pace=QUICK), judges=1)
    right = Submission(code=f"{HEAD}        return torch.softmax(x, dim=1)\n")
    options = Options(device="cpu")
    assert pool.submit(SOFTMAX, right, options).result(120).outcome.category == "correct"
    assert pool.describe(SOFTMAX, options).result(60).cases
    busy = "import ctypes\nctypes.CDLL(None).prctl(15, b'kevin-ray', 0, 0, 0)\nwhile True: pass\n"
    judging = pool.submit(SOFTMAX, Submission(code=busy), options)
    candidate = wait_for("kevin-ray")
    processes = {each for each in descendants(os.getpid()) if each.pid == candidate}
    assert judging.cancel() and processes and not outlived(processes)


def test_a_judge_gets_no_more_than_its_room(start: Start) -> None:
    pool = start(judges=1, in_flight=2)
    futures = [begin(pool, "sleep 0.2") for _ in range(6)]
    assert max(int(each.result(60).log) for each in futures) == 2


@pytest.mark.parametrize(("word", "error"), [("fail", JudgeError), ("problem", ProblemError)])
def test_errors_keep_their_kind(start: Start, word: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="as the code says"):
        begin(start(judges=1), word).result(60)


@pytest.mark.full
def test_what_a_lost_node_had_is_judged_elsewhere(start: Start, cluster: Cluster) -> None:
    node = add_node(cluster)
    pool = start(judges=3)
    while len(set(judges_of([begin(pool, "sleep 0.3") for _ in range(6)]))) < 3:
        pass  # until all have started
    futures = [begin(pool, "sleep 2") for _ in range(6)]
    time.sleep(1)
    cluster.remove_node(node, allow_graceful=False)
    left = set(judges_of(futures))
    assert len(left) == 2
    while len(found := set(judges_of([begin(pool, "sleep 0.3") for _ in range(6)]))) < 3:
        pass  # until the third has started on another node
    assert left < found


def test_what_is_sent_again_is_judged_once(start: Start) -> None:
    pool = start(judges=1)
    assert begin(pool).result(60).secret == "1"
    dispatcher = pool._dispatchers["cpu"]
    request = {
        "id": "a", "do": "judge", "problem": PROBLEM.model_dump(),
        "options": Options().model_dump(), "submission": {"code": "sleep 0.5"},
    }  # fmt: skip
    answers = ray.get([dispatcher.ask.remote(request) for _ in range(3)])
    assert [each["judgement"]["secret"] for each in answers] == ["2"] * 3


def test_each_gpu_has_a_judge_and_their_types_are_kept_apart(start: Start) -> None:
    with pytest.raises(JudgeError, match=r"this cluster has A100 and H100: choose, as pool='ray\?"):
        begin(start(), device="auto").result(60)
    info = start(accelerator="H100").device("cuda")
    assert info.device == "cuda:0" and info.versions["gpus"] == "0"
    (node,) = (each for each in ray.nodes() if "accelerator_type:H100" in each["Resources"])
    assert info.versions["node"] == node["NodeID"]
    with pytest.raises(JudgeError, match="no T4"):
        begin(start(accelerator="T4"), device="cuda").result(60)
    with pytest.raises(JudgeError, match="Ray places judges: use auto, cuda or cpu"):
        begin(start(), device="cuda:1").result(60)


@pytest.mark.full
def test_a_judge_with_another_device_is_left_out(start: Start) -> None:
    pool = start(Unlike, judges=2)
    name = pool.device("cpu").name
    assert set(judges_of([begin(pool, "sleep 0.3") for _ in range(20)])) == {name}


def test_judges_that_do_not_start_say_why(start: Start) -> None:
    pool = start(Broken, judges=2)
    with pytest.raises(JudgeError, match="no torch here"):
        begin(pool).result(60)
    with pytest.raises(JudgeError, match="no torch here"):
        pool.device("cpu")


@pytest.mark.full
def test_requests_survive_the_client_that_started_the_judges(start: Start) -> None:
    first = start(judges=1)
    process = begin(first).result(60).device.versions["process"]
    second = start(judges=1)
    judging = under_way(second, "sleep 2")
    first.close()
    assert judging.result(60).device.versions["process"] == process
    assert begin(second).result(60).device.versions["process"] != process


@pytest.mark.full
def test_a_dispatcher_that_dies_is_started_again(start: Start) -> None:
    pool = start(judges=1)
    process = begin(pool).result(60).device.versions["process"]
    judging = under_way(pool, "sleep 2")
    os.kill(wait_for("ray::Dispatcher"), signal.SIGKILL)
    assert judging.result(90).device.versions["process"] != process


def test_a_closed_pool_fails_what_is_open(start: Start) -> None:
    pool = start(judges=1)
    judging = under_way(pool, "sleep 60")
    pool.close()
    for future in (judging, begin(pool)):
        with pytest.raises(JudgeError, match="the pool is closed"):
            future.result(10)
    with pytest.raises(JudgeError, match="the pool is closed"):
        pool.device("cpu")


@pytest.mark.parametrize("name", ["ray?judges=0", "ray?gpus=2"])
def test_settings_that_are_none_are_named(name: str) -> None:
    with pytest.raises(ValueError, match="its settings are judges, accelerator, in_flight"):
        named_pool(name)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_an_address_without_a_cluster_is_said_at_once(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(JudgeError, match=f"no Ray cluster at RAY_ADDRESS={address}"):
        join_cluster()


CLIENT = """
import io, sys, time
from ray._private.utils import publish_error_to_driver
from ray._private.worker import global_worker
from kevin_env.pools.ray_pool import join_cluster

class Screen(io.StringIO):
    def fileno(self):  # as that of Textual
        return -1

sys.stderr = Screen()
join_cluster()
publish_error_to_driver("node", "lost", gcs_client=global_worker.gcs_client)
time.sleep(2)
"""


def test_a_client_joins_under_a_screen_and_ray_prints_nothing(cluster: Cluster) -> None:
    environment = os.environ | {"RAY_ADDRESS": str(cluster.address)}
    words = [sys.executable, "-c", CLIENT]
    assert subprocess.check_output(words, env=environment, stderr=subprocess.STDOUT) == b""


def test_the_example_clusters_are_valid() -> None:
    folder = Path(__file__).parents[2] / "examples"
    config = yaml.safe_load((folder / "ray_cluster.yaml").read_text())
    validate_config(prepare_config(config))
    manifest = yaml.safe_load((folder / "ray_kuberay.yaml").read_text())
    (workers,) = manifest["spec"]["workerGroupSpecs"]
    (container,) = workers["template"]["spec"]["containers"]
    assert manifest["kind"] == "RayCluster" and container["image"].startswith("registry.")
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
