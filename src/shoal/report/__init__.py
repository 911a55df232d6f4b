"""Reports: a release or the bundle of one comes in, one self-contained page leaves, with no outside resource."""

from shoal.report.pages import bundle_report, internal_report, public_report

__all__ = ["bundle_report", "internal_report", "public_report"]
