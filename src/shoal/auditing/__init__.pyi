from shoal.auditing.auditor import CAVEAT as CAVEAT
from shoal.auditing.auditor import VIEWS as VIEWS
from shoal.auditing.auditor import Attack as Attack
from shoal.auditing.auditor import Audit as Audit
from shoal.auditing.auditor import audit as audit
from shoal.auditing.auditor import plot_svg as plot_svg

__all__ = [
    "Attack",
]
