"""Spin walks through the model of the call protocol, and through each error that is planted in it."""

from pathlib import Path

import pytest

from proofs import spin


@pytest.mark.parametrize("check", spin.SHORT, ids=lambda check: check.name)
def test_the_model_of_the_call_protocol_has_no_error(check: spin.Check) -> None:
    verdict = spin.run(check)
    assert not verdict.error
    assert verdict.states > 100_000, "so few states hold not all that can happen"
    assert not verdict.unreached


@pytest.mark.parametrize("check", spin.BUGS, ids=lambda check: check.name)
def test_spin_finds_the_planted_bug(check: spin.Check) -> None:
    assert spin.run(check).error


@pytest.mark.parametrize("check", spin.SIGHTS, ids=lambda check: check.name)
def test_the_model_comes_to_what_it_is_about(check: spin.Check) -> None:
    assert spin.run(check).error.startswith("assertion violated 0 ")


def test_every_switch_of_the_model_is_checked() -> None:
    assert len(spin.BUGS) == 15
    assert len(spin.SIGHTS) == 9


def test_a_missing_program_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(spin.CheckFailed, match=spin.INSTALL):
        spin.run(spin.BUGS[0])


def test_a_search_that_is_cut_short_is_no_verdict() -> None:
    with pytest.raises(spin.CheckFailed):
        spin.run(spin.Check("no memory", spin.CLIENT, megabytes=2))
