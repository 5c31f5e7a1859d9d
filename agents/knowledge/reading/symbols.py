"""Letters of the symbol fonts, which a Word file names by font and place."""

from __future__ import annotations

_SYMBOL = dict(
    zip(
        range(0x61, 0x7B),
        "αβχδεφγηιϕκλμνοπθρστυϖωξψζ",
        strict=True,
    )
) | {
    0x44: "Δ", 0x46: "Φ", 0x47: "Γ", 0x4C: "Λ", 0x50: "Π", 0x51: "Θ", 0x53: "Σ", 0x57: "Ω", 0x58: "Ξ", 0x59: "Ψ",
    0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°", 0xB1: "±", 0xB3: "≥",
    0xB4: "×", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xD2: "®", 0xD3: "©", 0xD4: "™", 0xD6: "√",
    0xE5: "∑", 0xF2: "∫",
}  # fmt: skip
_WINGDINGS = {
    0x28: "☎", 0x2A: "✉", 0x4A: "☺", 0x6C: "●", 0x6E: "■", 0x6F: "☐", 0x71: "☐", 0x76: "❖", 0xA7: "▪", 0xA8: "☐",
    0xD8: "➢", 0xDF: "←", 0xE0: "→", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐"}
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
UNKNOWN = "□"


def symbol(font: str, place: str) -> str:
    """Of `w:sym`: the place is hexadecimal, often moved to F000 and above."""
    try:
        code = int(place, 16)
    except ValueError:
        return UNKNOWN
    known = _FONTS.get(font.casefold(), {})
    if 0xF000 <= code <= 0xF0FF or known:
        return known.get(code & 0xFF, UNKNOWN)
    return chr(code) if 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE else UNKNOWN
