"""What `adiyan doctor` asks Meta."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx

from mesh.adapters.meta import TOKEN_CODES
from mesh.cli.findings import Finding, Scene, broken, fine, note, place
from mesh.settings import is_loopback

WITHIN_S = 4.0
ANEW = "Make a lasting one for a system user in the Meta Business settings (docs/meta.md), and set META_ACCESS_TOKEN."


async def meta(scene: Scene) -> list[Finding]:
    chosen = scene.settings
    where = place(chosen.meta_api_base)
    local = is_loopback(urlsplit(chosen.meta_api_base).hostname or "")
    try:
        async with httpx.AsyncClient(timeout=WITHIN_S, trust_env=not local) as client:
            answer = await client.get(
                f"{chosen.meta_api_base}/{chosen.meta_phone_number_id}",
                params={"fields": "display_phone_number,quality_rating"},
                headers={"Authorization": f"Bearer {chosen.meta_access_token}"},
            )
            found = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        said = f"{where} can't be reached ({type(error).__name__}); replies wait until it is."
        return [broken("Meta", said, "Check this machine's way to the internet, and META_API_BASE.")]
    if not isinstance(found, dict) or not answer.is_success:
        return [_refused(answer.status_code, found)]
    if _digits(found.get("display_phone_number")) != _digits(chosen.meta_number):
        said = "META_PHONE_NUMBER_ID is of another number than META_NUMBER."
        return [broken("Meta", said, "Take both from one line of the app's page API Setup.")]
    if found.get("quality_rating") == "RED":
        return [note("Meta", "The token is accepted. Meta rates the number's quality as low, and may limit it.")]
    return [fine("Meta", "The token is accepted, and may write from this number")]


def _refused(status: int, found: Any) -> Finding:
    error = found.get("error") if isinstance(found, dict) else None
    code = str(error.get("code")) if isinstance(error, dict) else ""
    if status == 401 or code in TOKEN_CODES:
        return broken("Meta", f"It refuses the token (error {code or status}).", ANEW)
    todo = "Copy META_PHONE_NUMBER_ID anew from the app's page API Setup: it is not the number itself."
    return broken("Meta", f"It says {status} (error {code or 'unknown'}) where the number should be.", todo)


def _digits(number: object) -> str:
    return "".join(each for each in str(number) if each.isdigit())
