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


def pages():
    return sorted(
        path for part in ("", "docs", "results/*", "benchmarks") for path in TOP.glob(f"{part}/*.md".lstrip("/"))
    )


def test_every_link_leads_somewhere():
    """Pages link to files of the project; what is elsewhere is not looked up."""
    links = [(page, link) for page in pages() for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())]
    assert len(links) > 20
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []
