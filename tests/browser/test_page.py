"""The report in a real browser: `make test-browser` (Debian: chromium and chromium-driver)."""

from __future__ import annotations

import base64
import io
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import FAILED, cauchy_fit, fit_of, odd_model

pytestmark = pytest.mark.browser
EVIL = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "</script><svg onload=hack()>",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.fail("make test-browser needs chromium and chromedriver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1000,1400",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield running
    running.quit()


def open_report(browser: Any, fit: Any, folder: Path) -> str:
    """Open the report of a fit; what the page shows as text."""
    browser.get_log("browser")
    place = folder / "report.html"
    fit.report(place)
    browser.get(place.as_uri())
    text: str = browser.execute_script("return document.body.innerText")
    return text


def console(browser: Any) -> list[Any]:
    return list(browser.get_log("browser"))


def pixels(browser: Any) -> np.ndarray:
    from matplotlib.image import imread

    return np.asarray(imread(io.BytesIO(browser.get_screenshot_as_png()), format="png"))[..., :3]


def test_it_loads_alone_and_is_not_blank(browser: Any, tmp_path: Path) -> None:
    text = open_report(browser, cauchy_fit(), tmp_path)
    assert "Converged: all 2 checks passed." in text
    assert console(browser) == []
    seen = pixels(browser)
    assert seen.std() > 0.02
    assert np.mean(seen < 0.5) > 0.002
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert all(name.startswith("data:") for name in fetched)
    broken = browser.execute_script("return [...document.images].filter(i => !i.naturalWidth).length")
    assert broken == 0


def test_the_slider_moves_the_curve(browser: Any, tmp_path: Path) -> None:
    open_report(browser, cauchy_fit(), tmp_path)
    slider = browser.find_element("id", "round")

    def state() -> tuple[str, str]:
        line = browser.find_element("css selector", "#round-curve polyline").get_attribute("points")
        return browser.find_element("id", "round-label").text, line

    last = state()
    for _ in range(10):
        slider.send_keys("\ue012")  # arrow left
    first = state()
    assert first[0].startswith("1 of")
    assert first != last
    assert first[1] != last[1]
    for _ in range(10):
        slider.send_keys("\ue014")  # arrow right
    assert state() == last
    assert console(browser) == []


def test_names_stay_text(browser: Any, tmp_path: Path) -> None:
    fit = replace(fit_of(odd_model(EVIL)), name="<h1 onclick=hack()>name</h1>", versions={"<script>": "<b>1</b>"})
    text = open_report(browser, fit, tmp_path)
    for name in (*EVIL, "<h1 onclick=hack()>name</h1>"):
        assert name in text
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return document.scripts.length") == 2
    assert console(browser) == []


def test_a_bad_verdict_says_what_to_do(browser: Any, tmp_path: Path) -> None:
    text = open_report(browser, cauchy_fit(checks=FAILED), tmp_path)
    assert text.index("Not converged") < text.index("give a larger budget") < text.index("Results")


def test_it_prints(browser: Any, tmp_path: Path) -> None:
    open_report(browser, cauchy_fit(), tmp_path)
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000


def test_tables_fit_a_phone(browser: Any, tmp_path: Path) -> None:
    """At 420 px no table has to be swiped, and columns that are left out there are there on a wide screen."""
    shown = "return [...document.querySelectorAll('#posterior .lesser')].filter(x => x.offsetWidth).length"
    wide = "return [...document.querySelectorAll('table')].filter(x => x.scrollWidth > x.clientWidth + 1).length"
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 420, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        open_report(browser, fit_of(odd_model()), tmp_path)
        assert browser.execute_script("return window.innerWidth") == 420
        assert browser.execute_script(wide) == 0
        assert browser.execute_script("return document.body.scrollWidth") <= 420
        assert browser.execute_script(shown) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.execute_script(shown) > 0
