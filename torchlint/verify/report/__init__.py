"""Measurements as one HTML page that needs nothing else: no network, no script, no font.

Needs Jinja and Matplotlib, which come with the extra ``verify``; nothing is imported before it is used.
"""

from __future__ import annotations

from torchlint.verify.report.page import render

__all__ = ["render"]
