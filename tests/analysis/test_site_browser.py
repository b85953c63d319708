"""The whole site of the committed files in headless Chromium, opened from a folder."""

import os
import re
from pathlib import Path

import pytest

from analysis.site import build


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("site") / "site", os.environ["HARDGRAD_BINARY"]).parent


def pages(site: Path) -> list[Path]:
    return sorted(site.glob("**/*.html"))


def test_it_is_small_and_every_link_leads_to_a_file(site):
    assert sum(path.stat().st_size for path in site.glob("**/*") if path.is_file()) < 8_000_000
    assert len(pages(site)) > 80
    for page in pages(site):
        for to in re.findall(r'(?:href|src)="([^"#]+?)(?:#[^"]*)?"', page.read_text("utf-8")):
            assert to == "data:," or (page.parent / to).is_file(), f"{page.name}: {to}"


def show(browser, page: Path, width: int = 1400, scheme: str = "light"):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.get(page.as_uri())


@pytest.mark.parametrize("width, scheme", [(400, "light"), (400, "dark"), (1600, "light")])
def test_nothing_overflows_and_nothing_fails(browser, site, width, scheme):
    every = pages(site)
    few = [site / name for name in ("index.html", "explorer.html", "estimators.html", "networks.html", "claims.html")]
    for page in few + [path for path in every if path.parent != site][::7]:
        show(browser, page, width, scheme)
        wide, luminance, images = browser.execute_async_script("""
            const done = arguments[0], paper = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
            Promise.all([...document.images].map(image => image.decode().then(() => true, () => false)))
                .then(images => done([document.documentElement.scrollWidth, paper[0], images]));""")
        assert wide <= width and all(images), page
        assert (luminance < 60) == (scheme == "dark")
        assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == [], page


def rows(browser, column: int) -> list[str]:
    return browser.execute_script(
        """return [...document.querySelectorAll("#fixed-table tbody tr")].filter(row => !row.hidden)
        .map(row => row.cells[arguments[0]].textContent);""",
        column,
    )


def test_the_explorer_filters_and_sorts(browser, site):
    show(browser, site / "explorer.html")
    assert len(rows(browser, 0)) > 500
    choose = """const one = document.querySelector(`select[data-filters="fixed-table"][data-column="${arguments[0]}"]`);
        one.value = arguments[1]; one.dispatchEvent(new Event("input"));"""
    browser.execute_script(choose, 2, "half")
    assert set(rows(browser, 2)) == {"half"}
    browser.execute_script(choose, 0, "rloo")
    assert set(rows(browser, 0)) == {"rloo"}
    browser.execute_script(choose, 2, "")
    order = browser.execute_script(
        """return [...document.querySelectorAll('select[data-column="2"] option')].map(one => one.textContent)"""
    )
    assert [one for one in order if one in ("start", "half", "end")][:3] == ["start", "half", "end"]
    browser.execute_script(
        """[...document.querySelectorAll("#fixed-table th button")].find(one => one.textContent === "variance").click()"""
    )
    numbers = [float(text.split()[0].strip("()")) for text in rows(browser, 4) if "e" not in text and text != "–"]
    assert numbers == sorted(numbers) and len(numbers) > 3
