from shoal.mechanisms import parameter_fields as forms
from shoal.mechanisms.cluster_methods import ClusterMethod as ClusterMethod
from shoal.mechanisms.cluster_methods import IdpCBLS as IdpCBLS
from shoal.mechanisms.cluster_methods import IdpLS as IdpLS
from shoal.mechanisms.cluster_methods import InsensitiveDP as InsensitiveDP
from shoal.mechanisms.cluster_methods import Laplace as Laplace
from shoal.mechanisms.cluster_methods import MdavDP as MdavDP
from shoal.mechanisms.cluster_methods import OptimalDP as OptimalDP
from shoal.mechanisms.cluster_methods import PartitionMethod as PartitionMethod
from shoal.mechanisms.cluster_methods import RankingDP as RankingDP
from shoal.mechanisms.clusters import Clusters as Clusters
from shoal.mechanisms.clusters import centroids as centroids
from shoal.mechanisms.clusters import concepts_of as concepts_of
from shoal.mechanisms.clusters import floors as floors
from shoal.mechanisms.clusters import sum_noise as sum_noise
from shoal.mechanisms.clusters import sums_of as sums_of
from shoal.mechanisms.divided import declared_strata as declared_strata
from shoal.mechanisms.divided import within_strata as within_strata
from shoal.mechanisms.kanonymity.columns import KINDS as KINDS
from shoal.mechanisms.kanonymity.columns import confidential_columns as confidential_columns
from shoal.mechanisms.kanonymity.columns import place_in_tree as place_in_tree
from shoal.mechanisms.kanonymity.methods import Anatomy as Anatomy
from shoal.mechanisms.kanonymity.methods import KAnonymity as KAnonymity
from shoal.mechanisms.kanonymity.methods import SwapMdav as SwapMdav
from shoal.mechanisms.kanonymity.methods import SwapRanking as SwapRanking
from shoal.mechanisms.kanonymity.methods import TCloseness as TCloseness
from shoal.mechanisms.kanonymity.swap_algorithms import swap_source as swap_source
from shoal.mechanisms.kanonymity.swap_algorithms import swapped_ranks as swapped_ranks
from shoal.mechanisms.method import Learned as Learned
from shoal.mechanisms.method import Method as Method
from shoal.mechanisms.method import Output as Output
from shoal.mechanisms.method import Rebuilt as Rebuilt
from shoal.mechanisms.method import ShareNoise as ShareNoise
from shoal.mechanisms.moments.mechanism import budget_of as budget_of
from shoal.mechanisms.moments.mechanism import calibrate as calibrate
from shoal.mechanisms.moments.mechanism import masked as masked
from shoal.mechanisms.moments.mechanism import own_units as own_units
from shoal.mechanisms.moments.mechanism import rows_source as rows_source
from shoal.mechanisms.moments.methods import CrossMoment as CrossMoment
from shoal.mechanisms.moments.sampling import draw_ranks as draw_ranks
from shoal.mechanisms.moments.statistics import Centred as Centred
from shoal.mechanisms.moments.statistics import MomentSummary as MomentSummary
from shoal.mechanisms.moments.statistics import coskewness_change as coskewness_change
from shoal.mechanisms.moments.statistics import covariance_change as covariance_change
from shoal.mechanisms.moments.statistics import eigenvalues_change as eigenvalues_change
from shoal.mechanisms.moments.statistics import eigenvector_changes as eigenvector_changes
from shoal.mechanisms.moments.statistics import mean_change as mean_change
from shoal.mechanisms.pairs.measure_one import ABSENT as ABSENT
from shoal.mechanisms.pairs.measure_one import Histogram as Histogram
from shoal.mechanisms.pairs.measure_pairs import PairCounts as PairCounts
from shoal.mechanisms.pairs.measure_pairs import functions as functions
from shoal.mechanisms.pairs.measure_pairs import half_functions as half_functions
from shoal.mechanisms.pairs.mechanism import compared as compared
from shoal.mechanisms.pairs.mechanism import measure_attributes as measure_attributes
from shoal.mechanisms.pairs.mechanism import pair_numbers as pair_numbers
from shoal.mechanisms.pairs.mechanism import pair_positions as pair_positions
from shoal.mechanisms.pairs.method import PairsDP as PairsDP
from shoal.mechanisms.pairs.model import Drawing as Drawing
from shoal.mechanisms.pairs.model import MeasuredMarginals as MeasuredMarginals
from shoal.mechanisms.pairs.model import RecordSums as RecordSums
from shoal.mechanisms.pairs.model import block_sizes as block_sizes
from shoal.mechanisms.pairs.model import counted as counted
from shoal.mechanisms.pairs.model import draw_pair_values as draw_pair_values
from shoal.mechanisms.pairs.model import fitted as fitted
from shoal.mechanisms.pairs.model import measure_pairs as measure_pairs
from shoal.mechanisms.pairs.model import with_triples as with_triples
from shoal.mechanisms.parameter_fields import DECLARATIONS as DECLARATIONS
from shoal.mechanisms.parameter_fields import SHARED as SHARED
from shoal.mechanisms.parameter_fields import Parameter as Parameter
from shoal.mechanisms.parameter_fields import names_in as names_in
from shoal.mechanisms.parameter_fields import parameter as parameter
from shoal.mechanisms.parameter_fields import shared as shared
from shoal.mechanisms.partition_stage import PARTITIONS as PARTITIONS
from shoal.mechanisms.partition_stage import Group as Group
from shoal.mechanisms.partition_stage import PartitionStage as PartitionStage
from shoal.mechanisms.partition_stage import add_partition as add_partition
from shoal.mechanisms.partition_stage import check_alike as check_alike
from shoal.mechanisms.pram.mechanism import CorrectedFrequency as CorrectedFrequency
from shoal.mechanisms.pram.mechanism import States as States
from shoal.mechanisms.pram.mechanism import Unmixed as Unmixed
from shoal.mechanisms.pram.method import Pram as Pram
from shoal.mechanisms.registry import DEFAULT_METHOD as DEFAULT_METHOD
from shoal.mechanisms.registry import LOG as LOG
from shoal.mechanisms.registry import Choice as Choice
from shoal.mechanisms.registry import MethodInfo as MethodInfo
from shoal.mechanisms.registry import Tuned as Tuned
from shoal.mechanisms.registry import claim_words as claim_words
from shoal.mechanisms.registry import class_of as class_of
from shoal.mechanisms.registry import configured as configured
from shoal.mechanisms.registry import done_in as done_in
from shoal.mechanisms.registry import known_parameter as known_parameter
from shoal.mechanisms.registry import load_log as load_log
from shoal.mechanisms.registry import load_recipe as load_recipe
from shoal.mechanisms.registry import log_entries as log_entries
from shoal.mechanisms.registry import log_path as log_path
from shoal.mechanisms.registry import log_text as log_text
from shoal.mechanisms.registry import method_class as method_class
from shoal.mechanisms.registry import methods as methods
from shoal.mechanisms.registry import names as names
from shoal.mechanisms.registry import parameters as parameters
from shoal.mechanisms.registry import recipe_text as recipe_text
from shoal.mechanisms.registry import register as register
from shoal.mechanisms.registry import settled_text as settled_text
from shoal.mechanisms.registry import taken_by as taken_by
from shoal.mechanisms.registry import together as together
from shoal.mechanisms.registry import tuned_settings as tuned_settings
from shoal.mechanisms.registry import with_tuning as with_tuning
from shoal.mechanisms.sensitivity import CALIBRATIONS as CALIBRATIONS
from shoal.mechanisms.sensitivity import cluster_scales as cluster_scales
from shoal.mechanisms.sensitivity import cluster_sum_scale as cluster_sum_scale
from shoal.mechanisms.strata import by_stratum as by_stratum
from shoal.mechanisms.strata import strata_of as strata_of
from shoal.mechanisms.suppression.method import Suppress as Suppress
from shoal.mechanisms.tree.intervals import CutIntervals as CutIntervals
from shoal.mechanisms.tree.intervals import codes_of as codes_of
from shoal.mechanisms.tree.intervals import ends_of as ends_of
from shoal.mechanisms.tree.intervals import whole_counts as whole_counts
from shoal.mechanisms.tree.mechanism import TreeModel as TreeModel
from shoal.mechanisms.tree.mechanism import draw_tree_values as draw_tree_values
from shoal.mechanisms.tree.mechanism import grown as grown
from shoal.mechanisms.tree.mechanism import leaves_of as leaves_of
from shoal.mechanisms.tree.mechanism import measure_attribute as measure_attribute
from shoal.mechanisms.tree.mechanism import noisy_leaves as noisy_leaves
from shoal.mechanisms.tree.mechanism import settle_rows as settle_rows
from shoal.mechanisms.tree.mechanism import tree_numbers as tree_numbers
from shoal.mechanisms.tree.mechanism import tree_points as tree_points
from shoal.mechanisms.tree.mechanism import tree_positions as tree_positions
from shoal.mechanisms.tree.method import TreeDP as TreeDP
from shoal.mechanisms.tree.sample import DrawnTree as DrawnTree
from shoal.mechanisms.tree.sample import RowBlock as RowBlock
from shoal.mechanisms.tree.sample import blocks_of as blocks_of

__all__ = [
    "Choice",
    "MethodInfo",
    "MomentSummary",
    "Output",
    "Parameter",
    "PartitionStage",
    "Rebuilt",
    "Tuned",
    "coskewness_change",
    "covariance_change",
    "eigenvalues_change",
    "eigenvector_changes",
    "forms",
    "mean_change",
    "method_class",
    "parameter",
    "shared",
]
