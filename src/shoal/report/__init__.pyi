from shoal.report.differences import ColumnRange as ColumnRange
from shoal.report.differences import CountedTable as CountedTable
from shoal.report.differences import OrderedMarginal as OrderedMarginal
from shoal.report.differences import bin_edges as bin_edges
from shoal.report.differences import compare as compare
from shoal.report.differences import correlate as correlate
from shoal.report.differences import number_words as number_words
from shoal.report.differences import sampled as sampled
from shoal.report.findings import Findings as Findings
from shoal.report.findings import Subject as Subject
from shoal.report.findings import attacked as attacked
from shoal.report.findings import bundle_of as bundle_of
from shoal.report.findings import disclosed as disclosed
from shoal.report.findings import of_bundle as of_bundle
from shoal.report.findings import of_release as of_release
from shoal.report.findings import published as published
from shoal.report.pages import Page as Page
from shoal.report.pages import Section as Section
from shoal.report.pages import bundle_page as bundle_page
from shoal.report.pages import bundle_report as bundle_report
from shoal.report.pages import check_original as check_original
from shoal.report.pages import comparison as comparison
from shoal.report.pages import internal_report as internal_report
from shoal.report.pages import public_report as public_report
from shoal.report.pages import register_section as register_section
from shoal.report.words import Explanation as Explanation
from shoal.report.words import explanation as explanation

__all__ = [
    "Page",
    "Section",
    "bundle_report",
    "internal_report",
    "public_report",
]
