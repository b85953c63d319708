"""Sample files, written by the storage library's `write_storage_sample` into the folder HARDGRAD_SAMPLE; and a browser."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/support")]


@pytest.fixture(scope="session")
def sample() -> Path:
    folder = os.environ.get("HARDGRAD_SAMPLE")
    if not folder:
        pytest.skip("HARDGRAD_SAMPLE is not set: run with CTest, which writes the sample files first")
    return Path(folder)


@pytest.fixture()
def result(sample, tmp_path) -> Path:
    """A copy of the sample result that a test may modify."""
    return Path(shutil.copy(sample / "result.h5", tmp_path / "result.h5"))


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium or chromium-driver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(service=webdriver.chrome.service.Service(driver), options=options)
    yield started
    started.quit()
