"""The examples of the documentation run as they are printed there."""

import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[1]


def example(page):
    (code,) = re.findall(r"```python\n(.*?)```", (TOP / page).read_text(), re.DOTALL)
    return code


def output(code, folder):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_readme_prints_what_it_promises_in_15_lines(tmp_path):
    code = example("README.md")
    assert len(code.strip().splitlines()) <= 15
    lines = output(code, tmp_path)
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3", "next"]
    assert all(line.endswith(" safe") for line in lines[:-1])
    assert lines[-1].endswith("True")


def test_the_page_about_beliefs_runs(tmp_path):
    (line,) = output(example("docs/belief.md"), tmp_path)
    assert line.endswith("None")
