"""What shows a model, a graph, an error: ``summary``, ``graph``, ``explain``."""

from __future__ import annotations

from antorcha.inspector.summary import Row, Summary, Totals, summary

__all__ = ["Row", "Summary", "Totals", "summary"]
