"""The files under `submissions`: what each of them is for, read from its docstring."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from kevin_env.extract import extract_file
from kevin_env.judge import JudgePool, Options
from kevin_env.outcome import OUTCOME_TYPES, Correct, FormatError, Outcome
from kevin_env.problem import Problem, load_problem
from kevin_env.rules import Rules, check_rules
from kevin_env.score.scoring import at_bound

FOLDER = Path(__file__).parent / "submissions"
IMPATIENT = 2.0
"""Seconds for a file that is expected to run out of them."""
Judged = tuple[Outcome, str, set[str]]
NO_GAIN = 3.0
"""The most that a cheat may be paid; honest code of its kind is about as fast as the reference."""
KINDS = {
    f"{outcome.model_fields['category'].default}/{kind}"
    for outcome in OUTCOME_TYPES
    for kind in get_args(outcome.model_fields["kind"].annotation)
}
DEVICES = {"cpu": ("cpu",), "cuda": ("cuda",), "any": ("cpu", "cuda")}
"""Where a file is judged, by what it says of its device."""
MEDIAN = re.compile(r"(\d+\.\d+)x to (\d+\.\d+)x")

ATTACKS = {
    # work moved away from the clock
    "side stream": "side_stream_not_joined nonblocking_stream urgent_stream",
    "background thread or process": "background_thread background_process cpp_thread",
    "lazy tensor": "lazy_tensor lazy_by_function bits_not_resolved",
    "timers patched by name": "patched_clock",
    "timers patched in place": "swaps_code_objects rewrites_python_clocks",
    "timers patched in native code": "patches_the_vdso",
    "system and hardware clocks": "sets_the_clock sets_gpu_modes",
    "words of the clock": "writes_the_word_early says_it_is_through_and_works writes_a_later_word"
    " writes_the_word_from_its_host opens_its_own_gate",
    "time slices": "spends_its_time_slice",
    "memory mapped late": "maps_memory_in_each_call",
    "calls that need their host": "pretends_to_need_its_host",
    "graphs": "stale_graph graph_of_a_part",
    "work that one clock does not see": "computes_in_another_process",
    "caches kept warm": "persisting_l2",
    "slowing the reference": "burns_the_cores wakes_itself woken_by_a_socket continues_others "
    "hides_in_a_namespace"
    " stops_and_continues waits_inside_vfork punches_holes leaves_kernels_running "
    "floods_the_memory_bus"
    " timers_without_end timers_with_many_who_wait frees_a_file_later spins_on_after_its_call "
    "raises_the_constant",
    "noise": "hopes_for_noise",
    "deferral on the device": "early_done synchronizes_one_stream late_part_of_the_output "
    "never_joins_its_second_half"
    " works_behind_the_word",
    "work in phases that are not "
    "timed": "works_at_import table_made_at_import draws_before_the_clock",
    "heat and boost": "rests_before_its_calls raises_its_priority",
    "head start": "head_start answers_before_it_is_asked",
    "head start on the "
    "device": "polls_for_its_input starts_on_rows_that_are_there watches_its_input_by_copies",
    "early claim, late output": "late_outbox frees_what_it_claimed",
    "the harness's own costs": "writes_the_outbox keeps_its_output_in_the_inbox",
    # wrong answers that a check lets pass
    "zeros and constants": "zeros answers_with_nan one_nan",
    "pass-through": "returns_input",
    "no work launched": "launches_nothing never_writes",
    "part of the work": "partial_rows sampled_columns extrapolates searches_half",
    "one shape checked, another "
    "timed": "right_for_the_timed_shape right_for_other_shapes no_maximum_elsewhere",
    "right for the first calls": "cached_by_count honest_until_timed honest_until_timed_in_range",
    "one distribution": "knows_the_distribution no_maximum matches_by_equal_pixels "
    "neighbours_by_lattice"
    " folds_the_mask_into_weights searches_a_window_of_the_normal keeps_the_best_of_each_lane",
    "one range": "knows_the_range",
    "hard-coded shapes": "drops_the_tail",
    "weights as a fresh model has "
    "them": "assumes_no_bias assumes_unit_scale packs_weights_too_early own_weights",
    "degenerate task": "returns_the_mean wrong_axis permuted_columns",
    "gaps of the comparison": "one_value_for_all no_elements too_few_outputs too_many_outputs"
    " no_outputs wrong_shape a_list_for_a_dict true_for_one a_bool_of_two"
    " right_but_for_one_element sparse_output on_the_meta_device output_on_the_host "
    "lies_about_its_shape",
    "equal to everything": "always_equal",
    "ignored inputs": "ignores_an_input",
    "limits of the hardware": "too_much_shared_memory",
    "low entropy": "fabricates_a_scalar",
    "training or evaluation": "honest_in_training",
    # memory
    "memory that was freed": "returns_fresh_memory",
    "theft by heap or frames": "steals_expected steals_reference",
    "overwriting what is expected": "overwrites_every_tensor writes_nan_into_shared_memory",
    "shared memory": "reads_the_other_regions shrinks_shared_memory grows_shared_memory",
    "what others left": "searches_device_memory looks_for_leftovers",
    "claims on memory": "claims_memory_beyond claims_numbers_beyond claims_memory_never_lent "
    "claims_everything_often"
    " one_output_for_two one_memory_two_names spans_the_device",
    # state
    "cache by pointer": "cached_by_pointer",
    "cache by content": "cached_by_content",
    "cache by shape": "cached_by_shape",
    "cache in native code or files": "cached_in_cpp cached_in_a_file judged_again_on_what_it_saw",
    "packed inputs kept": "keeps_a_packed_input",
    "changed weights": "changes_the_weights weights_not_matched",
    "changed "
    "inputs": "input_mutation softmax_in_place writes_beside_its_input changes_its_input_last"
    " restores_its_input restores_its_input_behind_the_word",
    "patched reference": "finds_no_reference",
    "reference made to fail": "writes_to_the_references_inputs scribbles_on_the_references_inputs",
    "patched comparison": "patched_comparison",
    "overridden dispatcher": "overrides_the_dispatcher leaves_a_mode_on watches_the_dispatcher",
    "poisoned namespace": "poisons_builtins",
    "rewritten harness": "patches_the_runtime patches_the_wire goes_on_as_another_program "
    "ends_its_main_thread",
    "random numbers": "patched_random",
    "known seeds": "knows_seeds guesses_from_seeds finds_the_planted",
    "files run at start-up, import hooks": "plants_startup_files hooks_imports writes_elsewhere",
    "build caches": "poisons_build_caches",
    # processes, channels, system
    "forged verdict": "forged_verdict",
    "descriptors": "speaks_unasked looks_through_descriptors takes_descriptors_of_its_keeper "
    "sends_descriptors",
    "secrets in messages": "listens_to_orders",
    "attack on the "
    "parent": "writes_to_the_judge signals_its_keeper meddles_with_its_keeper endless_frame "
    "deep_message"
    " drips_its_answer endless_skeleton a_million_claims"
    " one_claim_too_many maps_the_same_often forges_its_failure",
    "secrets in files and environment": "reads_secrets",
    "grader's files": "edits_the_grader changes_file_modes mounts_in_its_own_namespace",
    "network": "uses_the_network",
    "daemon": "daemon",
    "processes without end": "fork_bomb thread_bomb",
    "memory without end": "memory_bomb memory_request gpu_memory_request hogs_device_memory",
    "disk": "fills_the_disk",
    "hang": "endless_loop endless_import endless_kernel stops_itself",
    "output and log injection": "output_flood control_characters_in_errors surrogates_in_errors",
    "deserialisation": "pickled_answer",
    "build": "includes_a_secret compiler_plugin build_daemon",
    "hiding from "
    "rules": "hides_behind_getattr hides_in_a_string torch_inside_a_kernel overloads_an_operator"
    " replaces_what_is_allowed callback_as_a_kernel another_model_by_new",
    "talking to the reader": "talks_to_the_reader",
    "clean exit": "exits exits_at_import exits_in_a_destructor",
    "packages and binaries": "installs_a_package runs_machine_code",
    "faults of the device": "illegal_access ignores_the_device_fault",
    "watched or not": "behaves_when_watched",
    "score files": "writes_score_files",
    "siblings": "harms_its_neighbours leases_system_files takes_back_its_oom_rank",
    "meetings": "meets_others leaves_a_key",
    "hostile "
    "exceptions": "hostile_exception exception_without_end blames_the_compiler deep_recursion",
    # gradients
    "gradients not computed": "backward_of_zeros backward_kept_from_the_first_call "
    "backward_of_a_detached_output",
    "torch's gradients": "backward_by_the_formula backward_of_the_reference",
    # no kernel, or not one of its own
    "torch computes": "torch_computes",
    "vendor's "
    "library": "calls_the_vendor torch_inside_cpp vendor_inside_cpp numpy_through_pointers",
    "compiled or traced reference": "compiles_the_reference traces_the_reference",
    "copied reference": "inherits_reference execs_reference",
    "fallback": "falls_back",
    "decoy": "decoy_kernel",
    "the language's own": "builtin_of_the_language",
    "the easy part": "only_the_easy_part",
    # precision
    "low precision "
    "inside": "bfloat16_inside float16_inside int8_inside int8_inside_bfloat16 splits_into_bfloat16"
    " narrow_accumulator rounds_integers error_within_the_budget"
    " eight_ulps_of_the_scale sixty_ulps_of_an_element",
    "flags that lower precision": "tf32_inside allows_tf32",
    "approximation": "fast_exponential truncated_series",
    "dressed up": "computes_in_double",
    "dtype": "wrong_dtype integers_as_floats",
    # no tricks, only faults
    "random results": "right_every_other_call",
    "faults": "no_model no_forward syntax_error missing_import compile_error link_error undefined_symbol jit_error "
    "cpp_exception segfault"
    " segfault_in_a_thread leaves_the_tail_unwritten launches_too_many_threads",
}
"""Every class of attack that is known to us, with the files that try it."""


@dataclass(frozen=True)
class Entry:
    """One file: its problem, where it runs, its rules, and how it must end.

    Its gradients are judged, too, if the name of the problem is followed by `, backward`.
    """

    path: Path
    problem: str
    device: str
    rules: Rules
    expect: str
    backward: bool = False

    @property
    def code(self) -> str:
        return self.path.read_text()

    @property
    def task(self) -> Problem:
        """The problem: ours by id, or one of the quick ones beside the submissions by file name."""
        return load_problem(
            str(FOLDER / "problems" / self.problem)
            if self.problem.endswith(".py")
            else self.problem
        )

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    def endings(self, device: str) -> tuple[str, ...]:
        """Every way in which it may end on `cpu`, `cuda` or a device such as `cuda:0`.

        An ending is a kind such as `correctness/values`; `correct`, at any speed; `no gain`, which
        is correct and not paid for a speedup; or `correct` with bounds of the median speedup, such
        as `0.5x to 1.5x`. Two joined by `or` are both right: which of them it is depends on the
        secret order of the inputs, or on a race that the submission has with itself.
        """
        for part in self.expect.split(", "):
            endings, _, where = part.partition(" on ")
            if where in ("", device.partition(":")[0]):
                return tuple(endings.split(" or "))
        raise ValueError(f"{self.path.name}: does not say how it ends on {device}")

    def met_by(self, outcome: Outcome, device: str) -> bool:
        """Whether the outcome is one that the file may end with on a device."""
        return any(_is(outcome, ending, device) for ending in self.endings(device))


def _is(outcome: Outcome, ending: str, device: str) -> bool:
    """Whether an outcome is this ending. Gain is what a score pays: not more than the interval allows."""
    if not isinstance(outcome, Correct):
        return f"{outcome.category}/{outcome.kind}" == ending
    if bounds := MEDIAN.fullmatch(ending):
        if outcome.speedup is None or outcome.speedup_interval is None:
            return False
        wide = (
            outcome.kind == "too_noisy" or device == "cpu"
        )  # then all that is said is the interval
        low, high = outcome.speedup_interval if wide else (outcome.speedup, outcome.speedup)
        return low <= float(bounds[2]) and float(bounds[1]) <= high
    paid = getattr(at_bound(outcome), "speedup", None)
    return ending == "correct" or (ending == "no gain" and (paid is None or paid < NO_GAIN))


def read_entry(path: Path) -> Entry:
    """A file's entry.

    Raises:
        ValueError: when its docstring is not of the form that every file's has.
    """
    text = path.read_text().split('"""')[1]  # one of the files does not parse
    sentence, blank, *fields = text.rstrip("\n").split("\n")
    values = dict(line.split(": ", 1) for line in fields)
    if (
        not sentence.endswith(".")
        or blank
        or list(values) != ["problem", "device", "rules", "expect"]
    ):
        raise ValueError(
            f"{path.name}: a sentence, an empty line, then problem, device, rules, expect"
        )
    problem, _, form = values["problem"].partition(", ")
    if form not in ("", "backward"):
        raise ValueError(f"{path.name}: problem {values['problem']!r}")
    fields = [values[name] for name in ("device", "rules", "expect")]
    entry = Entry(path, problem, *fields, form == "backward")  # type: ignore[arg-type]
    for device in DEVICES[entry.device]:
        for ending in entry.endings(device):
            known = ending in KINDS or ending in ("correct", "no gain") or MEDIAN.fullmatch(ending)
            if not known or ending.startswith("correct/"):
                raise ValueError(f"{path.name}: expects {ending!r}")
    return entry


def read_corpus(*devices: str) -> list[Entry]:
    """Every file for one of these devices, by name."""
    entries = [read_entry(path) for path in sorted(FOLDER.glob("ho*/*.py"))]
    return [entry for entry in entries if entry.device in devices]


def judged(entry: Entry, device: str, pool: JudgePool) -> Judged:
    """How the file ends, what it printed, and what the judge found odd about its times."""
    return begin(entry, device, pool)()


def begin(entry: Entry, device: str, pool: JudgePool) -> Callable[[], Judged]:
    """Starts judging a file on `cpu` or `cuda`; returns a function that waits for its end."""
    submission = extract_file(entry.code)
    if isinstance(submission, FormatError):
        return lambda: (submission, "", set())
    found = check_rules(entry.code, entry.rules, backward=entry.backward)
    if found is not None:
        return lambda: (found, "", set())
    hangs = all(ending.endswith("/timeout") for ending in entry.endings(device))
    seconds = IMPATIENT if hangs else 60.0
    # these files attack whatever they can reach: they are never run where a protection is missing
    options = Options(
        device=device, rules=entry.rules, build_timeout=seconds, call_timeout=seconds,
        require_sandbox=True, backward=entry.backward,
    )  # fmt: skip
    future = pool.submit(entry.task, submission, options)

    def end() -> Judged:
        judgement = future.result()
        return judgement.outcome, judgement.log, set(judgement.flags)

    return end
