from shoal.inference.analysis import intervals as intervals
from shoal.inference.analysis import main_numbers as main_numbers
from shoal.inference.replicates import replicate_weights as replicate_weights
from shoal.inference.replicates import write_replicate_weights as write_replicate_weights
from shoal.inference.result import ABOUT as ABOUT
from shoal.inference.result import Interval as Interval
from shoal.inference.result import Intervals as Intervals

__all__ = ["Interval", "Intervals", "intervals", "replicate_weights"]
