from shoal.tuning.grid import Row as Row
from shoal.tuning.grid import default_sizes as default_sizes
from shoal.tuning.grid import make_grid as make_grid
from shoal.tuning.grid import with_frontier as with_frontier
from shoal.tuning.private import METHOD as METHOD
from shoal.tuning.private import BoundChoice as BoundChoice
from shoal.tuning.private import account as account
from shoal.tuning.private import choose_bound as choose_bound
from shoal.tuning.private import units_off as units_off
from shoal.tuning.result import Tuning as Tuning
from shoal.tuning.tuner import tune as tune

__all__ = [
    "Row",
]
