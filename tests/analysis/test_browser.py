"""The report in headless Chromium: no script errors, the table sorts and filters, pictures load, nothing overflows."""

import pytest

from analysis import load
from analysis.report import report


@pytest.fixture(scope="module")
def page(browser, sample, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report(load(sample / "result.h5")))
    browser.get(path.as_uri())
    return browser


def column(page, name):
    """The texts of a column of the ranking table, for the visible rows."""
    return page.execute_script(
        """
        const table = document.getElementById("ranking-table");
        const at = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent === arguments[0]);
        return [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[at].textContent);""",
        name,
    )


def click(page, name):
    page.execute_script(
        """[...document.querySelectorAll("#ranking-table th button")]
        .find(button => button.textContent === arguments[0]).click();""",
        name,
    )


def test_loads_without_errors_and_asks_nobody(page):
    assert [entry for entry in page.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    fetched = page.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []


def test_an_error_would_be_seen(page):
    page.execute_script("setTimeout(() => { throw new Error('planted'); }, 0)")
    page.execute_async_script("setTimeout(arguments[0], 50)")
    assert any("planted" in entry["message"] for entry in page.get_log("browser"))


def test_every_picture_decodes(page):
    widths = page.execute_async_script("""
        const done = arguments[0], images = [...document.images];
        Promise.all(images.map(image => image.decode().catch(() => null))).then(() => done(images.map(i => i.naturalWidth)));""")
    assert len(widths) == 15 and min(widths) > 300


def test_the_table_sorts_by_numbers_and_texts(page):
    first = column(page, "variance × rows")
    number = lambda text: float(text.split()[0])
    click(page, "variance × rows")
    up = column(page, "variance × rows")
    assert up != first and sorted(up) == sorted(first)
    known = [number(text) for text in up if text != "–"]
    assert (
        known == sorted(known) and up[-1] == "–" and max(known) > 10
    )  # "9.5" before "10": as numbers; missing values are last
    click(page, "variance × rows")
    down = column(page, "variance × rows")
    assert [number(text) for text in down if text != "–"] == known[::-1] and down[-1] == "–"
    heads = page.execute_script("return [...document.querySelectorAll('th[aria-sort]')].map(h => [h.textContent, h.ariaSort])")
    assert heads == [["variance × rows", "descending"]]
    click(page, "estimator")
    assert column(page, "estimator") == sorted(column(page, "estimator"), key=str.lower)


def test_the_table_filters_by_words(page):
    field = page.find_element("css selector", "input[data-filters=ranking-table]")
    count = lambda: page.find_element("id", "ranking-table-count").text
    assert len(column(page, "network")) == 24 and count() == "24 of 24 rows"
    field.send_keys("QA rloo")
    assert (
        column(page, "network") == ["qa · memory_reader"]
        and column(page, "estimator") == ["rloo[samples=4]"]
        and count() == "1 of 24 rows"
    )
    field.send_keys("nothing of the kind")
    assert column(page, "network") == [] and count() == "0 of 24 rows"
    field.clear()
    field.send_keys(" ")
    assert len(column(page, "network")) == 24


@pytest.mark.parametrize("width", [375, 1400])
@pytest.mark.parametrize("unfolded", [False, True])
def test_nothing_overflows(page, width, unfolded):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    )
    page.execute_script("document.querySelectorAll('details').forEach(each => each.open = arguments[0])", unfolded)
    assert page.execute_script("return window.innerWidth") == width
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    sticking_out = page.execute_script("""
        return [...document.querySelectorAll("h1,h2,p,figure,details,.scroll,pre,input")]
            .filter(e => e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.outerHTML.slice(0, 80));""")
    assert sticking_out == []


@pytest.mark.parametrize("width", [400, 1400])
def test_what_ranks_stays_in_sight(page, width):
    """The names and the ranking value stay visible while the other columns scroll, and leave room for these."""
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    )
    places = """
        const table = document.getElementById("ranking-table"), box = table.parentElement;
        box.scrollLeft = arguments[0];
        return [...table.rows[1].cells].map(cell => { const r = cell.getBoundingClientRect(); return [r.left, r.right]; })
            .concat([[box.getBoundingClientRect().left, box.getBoundingClientRect().right]]);"""
    before, after = page.execute_script(places, 0), page.execute_script(places, 150)
    heads = page.execute_script(
        "return [...document.getElementById('ranking-table').tHead.rows[0].cells].map(cell => cell.textContent)"
    )
    assert heads[:3] == ["estimator", "metric", "rank"]
    assert before[:2] == after[:2] and after[2][0] < before[2][0]
    left, right = after[-1]
    assert left <= after[0][0] and after[0][1] <= after[1][0] + 1 and after[1][1] < left + 0.7 * (right - left)


def test_on_paper_no_table_is_cut(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        right = page.execute_script("""
            return [...document.querySelectorAll("table")].filter(table => table.checkVisibility()).map(t => t.getBoundingClientRect().right);""")
        assert len(right) >= 2 and max(right) <= 718
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_runs_unfold(page):
    shown = page.execute_script("""
        document.querySelectorAll("details").forEach(each => each.open = false);
        const runs = document.getElementById("cells").nextElementSibling;
        const before = runs.querySelector("details").checkVisibility();
        runs.querySelector("summary").click();
        return [before, runs.open, runs.querySelector("details").checkVisibility()];""")
    assert shown == [False, True, True]
