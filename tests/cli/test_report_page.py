"""The page of `report` in a real Chromium: drawn, silent, alone; at any width, dark and light, with and
without JavaScript; by independent checkers of HTML and accessibility."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import axe_core_python
import pytest
import readings
from browser import CHROMIUM, Browser
from project import Project

AXE = Path(axe_core_python.__file__).with_name("axe.min.js")
SCRIPT = """\
import os, sys, time
for step in range(1, 41):
    time.sleep(0.002)
    print(f"step: {step} loss: {1 / step + float(os.environ['MORE']):.6f} accuracy: {step / 40}", flush=True)
print("</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>", flush=True)
sys.exit(int(os.environ.get("STATUS", "0")))
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of one run, of several, and of a failed one."""
    site = Project(tmp_path_factory.mktemp("report"))
    (site.source / "train.py").write_text(SCRIPT)
    site.write(compile=None, hyperparameters=None, checkpoint=None, resources={"price": 36}, env={"MORE": "0"})
    site.run("--id", "one")
    site.run("--id", "two", "--set", "env.MORE=0.5")
    site.run("--id", "three", "--set", "env.STATUS=3", code=1)
    pages = {}
    for name, runs in {"one": ["one"], "many": ["one", "two", "three"], "failed": ["three"]}.items():
        pages[name] = site.root / f"{name}.html"
        site.ok("report", *runs, "--output", pages[name])
    return pages


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not CHROMIUM:
        pytest.skip("there is no chromium")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


def charts(page: Path) -> list:
    text = page.read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1])["charts"]


INK = """(() => [...document.querySelectorAll('.chart')].map(chart => [...chart.querySelectorAll('canvas')].some(canvas => {
    const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colors = new Set();
    for (let i = 0; i < bytes.length; i += 4) if (bytes[i + 3] > 200) colors.add(bytes.slice(i, i + 3).join());
    return colors.size > 2;
})))()"""


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["one", "many", "failed"])
def test_every_chart_is_drawn_and_nothing_else_happens(browser, pages, name, dark, width):
    browser.load(pages[name], width=width, dark=dark)
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [pages[name].resolve().as_uri()]
    drawn = browser.value(INK)
    assert len(drawn) == len(charts(pages[name])) >= 4 and all(drawn), drawn
    # Nothing but wide tables reaches over the edge, and those scroll by themselves.
    assert browser.value("document.documentElement.scrollWidth") <= width
    background = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == dark, background


def test_outside_text_is_inert(browser, pages):
    browser.load(pages["failed"])
    assert browser.value("document.title") == "fake: run three"
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert "document.title='owned'" in browser.value("document.body.innerText")


def test_without_javascript_everything_can_be_read(browser, pages):
    browser.load(pages["many"], scripts=False)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.value("document.querySelectorAll('canvas').length") == 0
    text = browser.value("document.body.innerText")
    for words in ("Verdict", "Comparison", "JavaScript, which is off here", "Figures of each metric",
                  "Every second of the run is in one bin", "Attempts, and what ended them", "How to repeat it"):
        assert words in text, words
    assert browser.value("""[...document.querySelectorAll('.chart, .script')].every(
        one => one.getBoundingClientRect().height === 0)""")


def test_a_keyboard_reads_and_zooms_a_chart(browser, pages):
    browser.load(pages["one"])
    browser.value("document.querySelector('#chart-0 .chart').focus()")
    browser.key("Home")
    assert browser.value("document.querySelector('#chart-0 .read').textContent") == "step 1; one: 1"
    browser.key("ArrowRight")
    assert browser.value("document.querySelector('#chart-0 .read').textContent") == "step 2; one: 0.5"
    before = browser.value("document.querySelector('#chart-0 .chart').innerText")
    browser.key("+")
    assert browser.value("document.querySelector('#chart-0 .chart').innerText") != before
    browser.key("0")
    assert browser.value("document.querySelector('#chart-0 .chart').innerText") == before


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["one", "many", "failed"])
def test_axe_finds_no_barrier(browser, pages, name, dark):
    browser.load(pages[name], dark=dark)
    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    browser.call("Runtime.evaluate", expression=AXE.read_text())
    found = json.loads(browser.value("""axe.run(document, {resultTypes: ['violations']}).then(all => JSON.stringify(
        all.violations.map(one => [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])))"""))
    assert found == []


@pytest.mark.parametrize("name", ["one", "many", "failed"])
def test_tidy_finds_no_fault_in_the_html(pages, name):
    tidy = shutil.which("tidy")
    if not tidy:
        pytest.skip("there is no tidy")
    # It is older than aria-roledescription, and would leave out the empty elements of legends.
    done = subprocess.run([tidy, "-e", "-q", "--drop-empty-elements", "no", "--warn-proprietary-attributes", "no",
                           pages[name]], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_paper_has_the_colours_of_light(browser, pages):
    browser.load(pages["one"], dark=True)
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.call("Page.printToPDF")["data"]
    browser.call("Emulation.setEmulatedMedia", media="")
    assert browser.complaints() == []


COLOURED = """(() => {
    const canvas = document.querySelector('#chart-0 canvas'), context = canvas.getContext('2d');
    const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data, columns = new Set();
    for (let i = 0; i < bytes.length; i += 4)
        if (bytes[i + 3] > 200 && Math.max(...bytes.slice(i, i + 3)) - Math.min(...bytes.slice(i, i + 3)) > 60)
            columns.add(Math.floor(10 * (i / 4 % canvas.width) / canvas.width));
    return [...columns].sort();
})()"""


def test_no_curve_crosses_the_time_between_two_attempts(browser, tmp_path):
    """Two attempts of ten minutes, and an hour between them."""
    site = Project(tmp_path)
    (site.source / "train.py").write_text("import os, sys\n"
                                          "if os.environ['STOKER_ATTEMPT'] == '1': sys.exit('NRT_EXEC_HW_ERR')\n")
    site.write(workspace=str(tmp_path / "workspace"), compile={"kind": "none"}, metrics=None, hyperparameters=None,
               retry={"attempts": 2})
    site.run("--id", "one")
    for attempt, begin in ((1, 1_800_000_000_000), (2, 1_800_004_200_000)):
        place = f"runs/one/train-{attempt}/node-0"
        rows = [(figure, second, begin + 1000 * second, 50) for second in range(600) for figure in (32, 33)]
        (tmp_path / "workspace" / place / "usage").write_bytes(readings.blocks(place, rows))
    site.ok("report", "one", "--output", tmp_path / "page.html")
    chart = charts(tmp_path / "page.html")[0]
    assert chart["gaps"] == [4200] and chart["marks"] == [{"x": 4200, "words": "attempt 2"}]
    browser.load(tmp_path / "page.html")
    columns = browser.value(COLOURED)
    assert {1, 9} <= set(columns) and not {3, 4, 5, 6, 7} & set(columns), columns
