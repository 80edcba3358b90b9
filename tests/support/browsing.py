"""Debian's Chromium, driven by Playwright. Tests are skipped without it, or fail if ACCORD_REQUIRE_BROWSER=1 (CI)."""

import os
import shutil
from contextlib import contextmanager

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path():
    """Where Chromium is; without it the test is skipped, or fails where it must be there."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("ACCORD_REQUIRE_BROWSER") == "1":
            pytest.fail("Chromium is not installed, but ACCORD_REQUIRE_BROWSER=1 says it must be.", pytrace=False)
        pytest.skip("Chromium is not installed")
    return path


@contextmanager
def browser():
    """A browser without a window."""
    path = chromium_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield running
        finally:
            running.close()
