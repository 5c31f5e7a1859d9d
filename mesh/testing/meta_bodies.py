"""What Meta posts: the forms of the simulated Twilio, said in Meta's way."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

from mesh.adapters.meta_webhooks import SIGNATURE_HEADER, signature
from mesh.adapters.twilio_signature import Pairs
from mesh.testing.exchange import Exchange
from mesh.testing.messages import Account, Message
from mesh.testing.rules import Template

CODES = {
    20429: 130429,
    21610: 131050,
    21617: 100,
    63013: 131009,
    63015: 131030,
    63016: 131047,
    63018: 130429,
    63019: 131053,
    63021: 131053,
    63024: 131026,
    63027: 132001,
    63028: 132000,
    63049: 131049,
}
"""Meta's, for the Twilio codes that scripts and rules are written in; any other stays as it is."""
_MEDIA = ("document", "image", "audio", "video", "sticker")


class MetaExchange(Exchange):
    """`account` has the phone number id as its sid, and the app's secret as its token."""

    def __init__(self, account: Account, access_token: str, templates: Mapping[str, Template] | None = None) -> None:
        super().__init__(account, templates)
        self.access_token = access_token

    def new_sid(self, *, file: bool) -> str:
        return "wamid." + base64.b64encode(b"\x18" + secrets.token_bytes(24)).decode()

    def _status_form(self, message: Message, state: str, failure: int) -> Pairs:
        echo = [("Echo", message.form["echo"])] if message.form else []
        return [*super()._status_form(message, state, failure), *echo]

    def written(self, url: str, event: str, form: Pairs, token: str) -> tuple[bytes, dict[str, str]]:
        fields = dict(form)
        part = self._said(fields) if event == "inbound" else {"statuses": [_status(fields)]}
        metadata = {"display_phone_number": self.account.number.lstrip("+"), "phone_number_id": self.account.sid}
        value = {"messaging_product": "whatsapp", "metadata": metadata, **part}
        body = {
            "object": "whatsapp_business_account",
            "entry": [{"id": "102290129340398", "changes": [{"value": value, "field": "messages"}]}],
        }
        raw = json.dumps(body).encode()  # not ASCII becomes \u…, as with Meta
        return raw, {
            SIGNATURE_HEADER: signature(raw, self.account.token),
            "Content-Type": "application/json",
            "User-Agent": "facebookexternalua",
        }

    def _said(self, fields: Mapping[str, str]) -> dict[str, Any]:
        who = fields["From"].removeprefix("whatsapp:")
        by_number = who.startswith("+")
        name = {"profile": {"name": fields.get("ProfileName", "Somebody")}}
        contact = {**name, **({"wa_id": who[1:]} if by_number else {"user_id": who})}
        message = {
            **({"from": who[1:]} if by_number else {"from_user_id": who}),
            "id": fields["MessageSid"],
            "timestamp": str(int(time.time())),
            **self._content(fields),
        }
        if quoted := fields.get("OriginalRepliedMessageSid"):
            message["context"] = {"from": self.account.number.lstrip("+"), "id": quoted}
        return {"contacts": [contact], "messages": [message]}

    def _content(self, fields: Mapping[str, str]) -> dict[str, Any]:
        kind, text = fields.get("MessageType", "text"), fields.get("Body", "")
        what: dict[str, Any] = {"body": text}
        if kind in _MEDIA:
            what = self._file(kind, fields["MediaUrl0"].rpartition("/")[2], text)
        elif kind == "location":
            place = {"name": fields.get("Label"), "address": fields.get("Address")}
            at = {"latitude": float(fields["Latitude"]), "longitude": float(fields["Longitude"])}
            what = {**at, **{key: value for key, value in place.items() if value}}
        elif kind == "reaction":
            what = {"message_id": fields.get("OriginalRepliedMessageSid", ""), **({"emoji": text} if text else {})}
        elif kind == "button":
            what = {"text": text, "payload": fields.get("ButtonPayload", "")}
        elif kind == "contacts":
            return {"type": "contacts", "contacts": [{"name": {"formatted_name": "Somebody"}}]}
        return {"type": kind, kind: what}

    def _file(self, kind: str, sid: str, text: str) -> dict[str, Any]:
        found = self.files.get(sid)
        medium = found[0] if found else None
        caption = {"caption": text} if text and not (medium and text == medium.name) else {}
        name = {"filename": medium.name} if medium and kind == "document" else {}
        return {"id": sid, "mime_type": medium.media_type if medium else "", "sha256": "", **name, **caption}


def _status(fields: Mapping[str, str]) -> dict[str, Any]:
    state = {"undelivered": "failed"}.get(fields["MessageStatus"], fields["MessageStatus"])
    code = int(fields.get("ErrorCode", "0"))
    errors = {"errors": [{"code": CODES.get(code, code), "title": "It failed"}]} if code else {}
    echo = {"biz_opaque_callback_data": fields["Echo"]} if "Echo" in fields else {}
    who = fields["To"].removeprefix("whatsapp:")
    to = {"recipient_id": who[1:]} if who.startswith("+") else {"recipient_user_id": who}
    return {"id": fields["MessageSid"], "status": state, "timestamp": str(int(time.time())), **to, **errors, **echo}
