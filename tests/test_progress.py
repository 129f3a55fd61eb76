import io

import pytest
from rich.console import Console
from synthetic import cauchy_fit

from pathtemp.engines.progress import Progress, RichProgress, Silent, TimeLeft, _Clock
from pathtemp.result.run import RoundRecord

HISTORY = cauchy_fit(iterations=10, draws=10).history


def play(progress: Progress) -> None:
    """What an engine does."""
    progress.start(budget=45_000)
    progress.compile("round [bold]")
    progress.anneal(lam=0.25, gradients=2_000)
    for record in HISTORY:
        progress.round(record)


def shown(*, terminal: bool, act) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=140, color_system=None)
    act(RichProgress(console))
    return text.getvalue()


def test_the_terminal_shows_where_the_run_is():
    def act(progress):
        play(progress)
        progress.finish()

    text = shown(terminal=True, act=act)
    last = text.replace("\x1b[?25h", "").rstrip().splitlines()[-1]
    record = HISTORY[-1]
    assert "sample" in last
    assert "100%" in last
    assert f"round {len(HISTORY)} " in last
    # Those that count for the fit, as its summary counts them.
    assert f"round trips {sum(r.tours for r in HISTORY if r.phase == 'sample')}" in last
    assert f"log z {record.log_z:.3f} ± {record.log_z_se:.3f}" in last
    assert "k-hat 0.20" in last
    assert "0:00 left" in last


def bar_state(progress: RichProgress):
    (task,) = progress._bar.tasks
    return task


def test_every_call_moves_the_bar():
    seen = []

    def act(progress):
        progress.start(budget=1_000)
        progress.compile("round [bold]")
        seen.append((bar_state(progress).description, bar_state(progress).completed))
        progress.anneal(lam=0.25, gradients=200)
        seen.append((bar_state(progress).fields["state"], bar_state(progress).completed))
        progress.round(RoundRecord("adapt", 700, 3, -1.0, 0.1, float("nan"), 0.8))
        seen.append((bar_state(progress).description, bar_state(progress).completed))
        progress.finish()

    shown(terminal=True, act=act)
    assert seen == [("compile round [bold]", 0), ("lam 0.25", 200), ("adapt", 700)]


def test_compiling_does_not_spoil_the_time_left():
    times = iter([0.0, 1.0, 61.0, 62.0])
    left = TimeLeft(10_000, clock=times.__next__)
    assert left.after(1_000) == pytest.approx(9.0)
    left.skip()
    assert left.after(1_500) == pytest.approx(8.5)
    assert left.after(2_500) == pytest.approx(7.5)


def test_the_time_left_is_not_guessed_and_never_negative():
    times = iter([0.0, 1.0, 2.0])
    left = TimeLeft(100, clock=times.__next__)
    left.skip()
    assert left.after(10) is None
    assert left.after(200) == 0.0


def test_a_slow_density_is_not_taken_for_compiling():
    times = iter([0.0, 1000.0])
    left = TimeLeft(10_000, clock=times.__next__)
    left.skip()
    assert left.after(1_000) == pytest.approx(9_000.0)


def test_the_time_runs_between_rounds():
    """However long a round takes: first the time so far, then that which is left."""
    seen = []

    def act(progress):
        progress.start(budget=1_000)
        (clock,) = [column for column in progress._bar.columns if isinstance(column, _Clock)]
        task, now = bar_state(progress), progress._bar.get_time()
        task._get_time = lambda: now + 600.0
        seen.append(clock.render(task).plain)
        task.fields["end"] = now + 3600.0
        seen.append(clock.render(task).plain)
        task.fields["end"] = now
        seen.append(clock.render(task).plain)
        progress.finish()

    shown(terminal=True, act=act)
    assert seen == ["10:00 so far", "at most 50:00 left", "at most 0:00 left"]


def test_nothing_is_written_where_there_is_no_terminal():
    def act(progress):
        play(progress)
        progress.finish()

    assert shown(terminal=False, act=act) == ""


def test_an_error_ends_the_display():
    def run(progress):
        with progress:
            play(progress)
            raise RuntimeError

    def act(progress):
        with pytest.raises(RuntimeError):
            run(progress)
        assert progress._bar is None
        progress.finish()

    shown(terminal=True, act=act)


def test_a_display_can_be_used_for_a_second_run():
    def act(progress):
        play(progress)
        play(progress)
        progress.finish()

    assert f"round {2 * len(HISTORY)}" not in shown(terminal=True, act=act)


def test_more_than_the_budget_does_no_harm():
    def act(progress):
        progress.start(budget=0)
        progress.round(RoundRecord("sample", 10**9, 3, -1.0, 0.1, 0.2, 0.8))
        progress.finish()

    assert "100%" in shown(terminal=True, act=act)


def test_silence_and_a_display_of_ones_own(capsys):
    class Mine(Silent):
        rounds = 0

        def round(self, record):
            self.rounds += 1

    mine = Mine()
    for progress in (Silent(), mine):
        play(progress)
        progress.finish()
    assert mine.rounds == len(HISTORY)
    assert capsys.readouterr() == ("", "")
