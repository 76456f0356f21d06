"""Environments are made whole or not at all, from pinned packages, by a Python that works."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from portability import environments
from portability.environments import CreationError

# A Python that makes "virtual environments" of itself and notes what it is asked to install.
FAKE = """#!/bin/sh
case "$1 $2" in
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo venv >> {log} ;;
    "-m pip") shift 4; echo "$*" >> {log}
        case "$*" in *"{refused}"*) echo "ERROR: no matching distribution" >&2; exit 1 ;; esac ;;
    "-c "*ensurepip*) echo {version} ;;
    "-c "*) echo "a warning"; echo '{{"python": "3.11.9", "torch": "2.13.0", "triton": "3.2.0"}}' ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for environments, and an empty PATH but for the system's tools."""
    monkeypatch.setenv(environments.PLACE, str(tmp_path / "environments"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path


def fake(folder: Path, name: str = "python3.11", refused: str = "nothing at all", version: str = "3.11") -> str:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(FAKE.format(log=folder / "log", refused=refused, version=version))
    program.chmod(0o755)
    return str(program)


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


def test_a_made_environment_is_listed_with_its_versions(folder: Path) -> None:
    made = environments.create("ascend", fake(folder))
    assert environments.installed() == {"ascend": made}
    assert made.versions["triton"] == "3.2.0"
    assert Path(made.python).exists()


def test_torchs_own_triton_goes_before_the_other_one_comes(folder: Path) -> None:
    """Two distributions with a package `triton` would overwrite each other's files."""
    environments.create("ascend", fake(folder))
    steps = log(folder)
    removed = next(i for i, step in enumerate(steps) if "uninstall" in step)
    added = next(i for i, step in enumerate(steps) if "triton-ascend" in step)
    torch = next(i for i, step in enumerate(steps) if "torch==" in step)
    assert torch < removed < added
    assert "--no-deps" in steps[added]


@pytest.mark.parametrize("name", list(environments.known()))
def test_every_package_is_pinned(name: str) -> None:
    recipe = environments.known()[name]
    assert all("==" in package for package in (recipe.triton, *recipe.packages, *recipe.also))


def test_a_failed_installation_leaves_nothing_and_says_why(folder: Path) -> None:
    with pytest.raises(CreationError, match="no matching distribution"):
        environments.create("ascend", fake(folder, refused="triton-ascend"))
    assert environments.installed() == {}
    assert not (environments.place() / "ascend").exists()


def test_an_interruption_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(line: str) -> None:
        if "torch" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        environments.create("ascend", fake(folder), say=interrupt)
    assert not (environments.place() / "ascend").exists()


def test_what_is_there_is_not_made_again(folder: Path) -> None:
    first = environments.create("ascend", fake(folder))
    steps = len(log(folder))
    assert environments.create("ascend", fake(folder)) == first
    assert len(log(folder)) == steps


def test_an_environment_of_other_pins_is_made_anew(folder: Path) -> None:
    made = environments.create("ascend", fake(folder))
    mark = Path(made.python).parent.parent / environments.MARK
    mark.write_text(mark.read_text().replace(environments.known()["ascend"].digest, "of last year"))
    environments.create("ascend", fake(folder))
    assert log(folder).count("venv") == 2


def test_an_unfinished_environment_is_none(folder: Path) -> None:
    (environments.place() / "ascend" / "bin").mkdir(parents=True)
    assert environments.installed() == {}
    environments.create("ascend", fake(folder))
    assert "ascend" in environments.installed()


def test_two_at_once_make_one(folder: Path) -> None:
    python, made = fake(folder), list[environments.Environment]()

    def create() -> None:
        made.append(environments.create("ascend", python))

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log(folder).count("venv") == 1
    assert made[0] == made[1]


def test_a_removed_environment_is_gone(folder: Path) -> None:
    environments.create("ascend", fake(folder))
    assert environments.remove("ascend")
    assert environments.installed() == {}
    assert not environments.remove("ascend")


@pytest.mark.parametrize("name", ["asend", "../ascend", ""])
def test_only_known_environments_are_removed(folder: Path, name: str) -> None:
    with pytest.raises(LookupError, match=r"there are ascend, triton-3\.6"):
        environments.remove(name)


def test_an_unknown_name_is_answered_with_the_choices(folder: Path) -> None:
    with pytest.raises(CreationError, match=r"no environment 'asend'; there are ascend, triton-3\.6"):
        environments.create("asend")


def test_a_missing_environment_is_answered_with_its_command(folder: Path) -> None:
    with pytest.raises(LookupError, match=r"portability env create triton-3\.6"):
        environments.get("triton-3.6")


def test_a_name_left_behind_by_a_version_manager_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shims, real = folder / "shims", folder / "real"
    for place in (shims, real):
        place.mkdir()
    (shims / "python3.10").write_text("#!/bin/sh\necho 'pyenv: python3.10: command not found' >&2; exit 127\n")
    (shims / "python3.10").chmod(0o755)
    good = fake(real, "python3.10", version="3.10")
    monkeypatch.setenv("PATH", f"{shims}:{real}:/bin")
    assert environments.find_python(("3.10",)) == good


def test_no_fitting_python_is_named_with_what_was_tried(folder: Path) -> None:
    python = fake(folder, "python3.12", version="3.12")
    with pytest.raises(CreationError, match=r"Python 3\.11 or 3\.10 is needed.*python3\.12: is Python 3\.12"):
        environments.create("ascend", python)


def test_a_python_that_cannot_be_started_is_named(folder: Path) -> None:
    with pytest.raises(CreationError, match="No such file"):
        environments.find_python(("3.11",), str(folder / "absent"))


def test_the_preferred_version_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = folder / "old", folder / "new"
    fake(old, "python3.10", version="3.10")
    wanted = fake(new, "python3.19", version="3.19")
    monkeypatch.setenv("PATH", f"{old}:{new}:/bin")
    assert environments.find_python(("3.19", "3.10")) == wanted


def test_the_folder_is_the_variables_or_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(environments.PLACE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert environments.place() == tmp_path / "triton-portability" / "environments"
    monkeypatch.setenv(environments.PLACE, str(tmp_path / "mine"))
    assert environments.place() == tmp_path / "mine"


def test_a_runner_sees_the_engine_and_nothing_beside_it(folder: Path) -> None:
    """What lies beside an installed engine is the default environment's torch and triton."""
    made = environments.create("ascend", fake(folder))
    command, variables = environments.start(made, folder / "own")
    assert command == [made.python, "-m", "portability.runner"]
    assert os.listdir(variables["PYTHONPATH"]) == ["portability"]
    found = subprocess.run(
        [sys.executable, "-S", "-c", "import portability.backends, portability.kernels"],
        env={"PYTHONPATH": variables["PYTHONPATH"]}, check=False, cwd=folder,
    )  # fmt: skip
    assert found.returncode == 0


def test_neither_torch_nor_triton_is_imported() -> None:
    script = "import sys, portability.environments; print({'torch', 'triton'} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"
