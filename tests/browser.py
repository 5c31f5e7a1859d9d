"""A real browser for tests: the system's Chromium, driven by playwright. Without one, its tests are skipped by name; in
CI that is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, ViewportSize, async_playwright

DESKTOP, PHONE = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=844)
NAMES = ("chromium", "chromium-browser", "google-chrome")
ABSENT = "no Chromium: apt install chromium, or name one in ADIYAN_CHROMIUM"

Open = Callable[..., Awaitable["Tab"]]


@dataclass
class Tab:
    """A page, what it asked for, and what it complained about."""

    page: Page
    requested: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def strangers(self) -> list[str]:
        """Requests that left this machine."""
        return [url for url in self.requested if urlsplit(url).hostname not in ("127.0.0.1", "localhost")]

    async def is_wider_than_its_window(self) -> bool:
        return bool(await self.page.evaluate("document.scrollingElement.scrollWidth > innerWidth"))


def chromium() -> str:
    """Its path. Skips the test when there is none, and fails it in CI."""
    found = os.environ.get("ADIYAN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(ABSENT)
    pytest.skip(ABSENT)


@pytest.fixture
async def open_page() -> AsyncIterator[Open]:
    """`await open_page(url, PHONE)`: in a context of its own, as another person's browser would be."""
    path = chromium()
    async with async_playwright() as driver:
        # what it would ask its maker for in the background is off: no test may use the network
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        browser = await driver.chromium.launch(executable_path=path, args=quiet)

        async def opened(url: str, viewport: ViewportSize = DESKTOP) -> Tab:
            context = await browser.new_context(viewport=viewport, has_touch=viewport is PHONE)
            context.set_default_timeout(20_000)
            tab = Tab(await context.new_page())
            tab.page.on("request", lambda request: tab.requested.append(request.url))
            tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
            tab.page.on(
                "console", lambda line: tab.complaints.append(line.text) if line.type in ("error", "warning") else None
            )
            await tab.page.goto(url)
            return tab

        yield opened
        await browser.close()
