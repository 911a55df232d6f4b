"""Reports: a release or the bundle of one comes in, one self-contained page leaves, with no outside resource."""

from shoal.report.profile import internal_report, public_report

__all__ = ["internal_report", "public_report"]
