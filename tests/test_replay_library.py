import json
from dataclasses import replace
from pathlib import Path

import pytest
from trajectories import BROKEN, RIGHT, timed, trajectory, turn, write

from kevin_env.app.replay.library import Library
from kevin_env.app.replay.query import Listing, ordered, read_query
from kevin_env.app.replay.rows import Row, row_of
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine, Recorder, read_trajectories


def whole(path: Path) -> Library:
    library = Library(path)
    library.advance()
    return library


def ids(library: Library) -> list[str]:
    return [row.episode_id for row in library.rows]


def test_a_row_says_of_an_episode_what_the_episode_says(tmp_path: Path) -> None:
    episodes = [
        trajectory(turn(1), RIGHT, BROKEN, returns=(0.92, 2.3, 0.0)),
        trajectory(timed(1, 3.0, kind="too_noisy"), timed(2, 2.0), id="none", hardware=None),
    ]
    library = whole(write(tmp_path / "t.jsonl", *episodes))
    for row, episode in zip(library.rows, episodes, strict=True):
        assert row == row_of(episode, row.place)
        assert library.episode(row) == episode
    best = [(row.marks, row.best) for row in library.rows]
    assert best == [("?●x", 2.0), ("○●", 3.0)]


def test_what_can_be_read_is_shown_and_the_rest_named(tmp_path: Path) -> None:
    good = trajectory(RIGHT).model_dump_json()
    future = good.replace("kevin-trajectory/1", "kevin-trajectory/9")
    newer = json.dumps(json.loads(good) | {"episode_id": "newer", "of_tomorrow": 1})
    lines = [
        good, '{"schema": ', "", '{"messages": []}', future, "[1, 2]", "\x00\xff", newer,
        good[: len(good) // 2],
    ]  # fmt: skip
    (tmp_path / "t.jsonl").write_bytes("\n".join(lines).encode("latin-1"))
    library = whole(tmp_path / "t.jsonl")
    assert ids(library) == ["e1", "newer"]
    assert [bad.line for bad in library.bad] == [2, 4, 5, 6, 7, 9]
    assert "kevin-trajectory/9" in library.bad[2].reason
    assert "half-written" in library.bad[-1].reason
    assert [library.bad[at].reason for at in (1, 3)] == [
        "schema is None, this version reads 'kevin-trajectory/1'", "not a JSON object",
    ]  # fmt: skip
    backwards = Library(tmp_path / "t.jsonl", newest_first=True)
    backwards.advance()
    assert (backwards.bad, ids(backwards)) == (library.bad, ["e1", "newer"])
    assert library.progress == 1.0


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    (file := tmp_path / "t.jsonl").write_text(trajectory(RIGHT).model_dump_json(), "utf-8-sig")
    library = whole(file)
    assert (ids(library), library.bad) == (["e1"], [])
    assert isinstance(library.episode(library.rows[0]), Trajectory)
    assert all(isinstance(each, Trajectory) for each in read_trajectories(file))


def test_a_row_that_lies_gives_a_bad_line(tmp_path: Path) -> None:
    values = json.loads(trajectory(RIGHT).model_dump_json())
    del values["turns"][0]["feedback"]
    (tmp_path / "t.jsonl").write_text(json.dumps(values) + "\n")
    library = whole(tmp_path / "t.jsonl")
    bad = library.episode(library.rows[0])
    assert isinstance(bad, BadLine)
    assert "feedback" in str(bad)


def test_reading_begins_at_the_end_stops_in_time_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kevin_env.app.replay.library._BLOCK", 1000)  # less than a line
    file = write(tmp_path / "t.jsonl", *(trajectory(RIGHT, id=f"e{n}") for n in range(400)))
    library = Library(file, newest_first=True)
    assert library.advance(0.0)
    assert [row.episode_id for row in library.finished] == ["e399"]
    assert 0 < library.progress < 0.5
    while library.advance(0.0):
        pass
    assert [row.episode_id for row in library.finished] == [f"e{n}" for n in reversed(range(400))]
    assert ids(library) == [f"e{n}" for n in range(400)]
    assert library.episode(library.rows[-1]).episode_id == "e399"  # type: ignore[union-attr]
    write(file, trajectory(RIGHT, id="later"))
    library.refresh()
    library.advance()
    assert ids(library)[-2:] == ["e399", "later"]


def test_a_folder_is_read_with_what_is_below(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "b.jsonl", trajectory(RIGHT, id="b"))
    write(tmp_path / "deep" / "a.jsonl", trajectory(RIGHT, id="a"))
    Recorder(tmp_path / "c.jsonl").begin(trajectory(turn(1), id="c", stop_reason=None))
    library = whole(tmp_path)
    assert ids(library) == ["b", "a", "c"]
    write(tmp_path / "d.jsonl", trajectory(RIGHT, id="d"))
    assert library.refresh()
    library.advance(1)
    assert ids(library) == ["b", "d", "a", "c"]
    assert not library.refresh()


def test_a_running_episode_is_followed_to_its_end(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.begin(trajectory(stop_reason=None))
    library = whole(tmp_path / "t.jsonl")
    [row] = library.rows
    assert (row.stop_reason, row.marks, row.place.running) == (None, "", True)
    recorder.add("e1", turn(1))
    assert library.refresh()
    assert library.rows[0].marks == "?"
    recorder.finish(trajectory(turn(1), RIGHT))
    found = library.episode(row)  # the old row, from before
    assert isinstance(found, Trajectory)
    assert len(found.turns) == 2
    assert [(row.episode_id, row.place.running) for row in library.rows] == [("e1", False)]


def test_a_line_that_grows_is_read_when_it_is_whole(tmp_path: Path) -> None:
    file, line = tmp_path / "t.jsonl", trajectory(RIGHT).model_dump_json()
    file.write_text(line[:100])
    library = whole(file)
    assert [bad.line for bad in library.bad] == [1]
    with file.open("a") as more:
        more.write(line[100:])
    assert library.refresh()
    library.advance(1)
    assert (ids(library), library.bad) == (["e1"], [])
    with file.open("a") as more:
        more.write("\nnonsense\n")
    library.refresh()
    library.advance(1)
    assert [bad.line for bad in library.bad] == [2]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", trajectory(RIGHT), trajectory(RIGHT, id="e2"))
    library = whole(file)
    file.unlink()
    write(file, trajectory(RIGHT, id="new"))
    library.refresh()
    library.advance(1)
    assert ids(library) == ["new"]


def test_a_file_that_went_away_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", trajectory(RIGHT))
    library = whole(file)
    [row] = library.rows
    file.unlink()
    assert "no longer there" in str(library.episode(row))
    assert library.refresh()
    assert library.rows == []


def test_problems_are_sorted_by_number() -> None:
    names = ("L10_1", "L2_10", "L2_9", "a1", "1a", "")
    many = [row_of(trajectory(id=name, model=name)) for name in names]
    assert [row.model for row in ordered(many, "model")] == [
        "",
        "1a",
        "a1",
        "L2_9",
        "L2_10",
        "L10_1",
    ]


def test_the_record_is_searched_in_slices(tmp_path: Path) -> None:
    file = write(
        tmp_path / "t.jsonl",
        *(trajectory(RIGHT, id=f"e{n}") for n in range(20)),
        trajectory(BROKEN, id="x"),
    )
    listing = Listing(whole(file), "text:IDENTIFIER")
    while listing.advance(0.0):
        pass
    listing.arrange()
    assert [row.episode_id for row in listing.shown] == ["x"]
    listing.filter("text:nowhere")
    listing.advance()
    listing.arrange()
    assert (listing.shown, listing.progress) == ([], 1.0)


def rows() -> tuple[Row, ...]:
    episodes = (
        trajectory(timed(1, 2.0), id="a", model="qwen", returns=(2.3,)),
        trajectory(BROKEN, id="b", model="gpt", returns=(0.0,), stop_reason=None),
        trajectory(timed(1, 0.5), timed(2, 3.0), id="c", model="Qwen", returns=(1.0, 3.3)),
    )
    return tuple(map(row_of, episodes))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", "abc"), ("QWEN", "ac"), ("-qwen", "b"), ("L1 softmax", "abc"), ("L2", ""),
        ("level:1 model:gpt", "b"), ("category:correct", "ac"), ("category:corr", ""),
        ("speedup>2", "c"), ("speedup>=2x", "ac"), ("speedup<9", "ac"), ("turns=2", "c"),
        ("return<1", "b"), ("stop:running", "b"), ('problem:"softmax" id:c', "c"),
    ],
)  # fmt: skip
def test_filters(words: str, found: str) -> None:
    query = read_query(words)
    assert "".join(row.episode_id for row in rows() if query.matches(row)) == found
    assert query.trouble == ""


@pytest.mark.parametrize(
    ("sort", "order", "backwards"),
    [
        ("file", "abc", "cba"), ("newest", "cba", "abc"), ("best", "cab", "acb"),
        ("return", "acb", "bca"), ("turns", "cab", "abc"), ("model", "bac", "acb"),
    ],
)  # fmt: skip
def test_orders(sort: str, order: str, backwards: str) -> None:
    def ids(reverse: bool) -> str:
        found = ordered(rows(), sort, reverse)  # type: ignore[arg-type]
        return "".join(row.episode_id for row in found)

    assert (ids(False), ids(True)) == (order, backwards)


@pytest.mark.parametrize(
    "words", ["speedup>", "speedup>x", "color:red", 'text:"', "-", ":", '"', "a:b:c", "speedup>>1"]
)
def test_half_typed_filters_do_not_fail(words: str) -> None:
    [row for row in rows() if read_query(words).matches(row)]


@pytest.mark.timeout(60)
def test_many_rows_are_filtered_and_sorted_soon() -> None:
    query = read_query("qwen speedup>1")
    many = [replace(row, created=str(n)) for n in range(30_000) for row in rows_once]
    assert len(ordered(filter(query.matches, many), "best")) == 60_000


rows_once = rows()
