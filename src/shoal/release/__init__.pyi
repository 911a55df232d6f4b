from shoal.release.bundle import Bundle as Bundle
from shoal.release.bundle import RegistryRecord as RegistryRecord
from shoal.release.bundle import registry_record as registry_record
from shoal.release.bundle import write_documents as write_documents
from shoal.release.estimate import ResourceEstimate as ResourceEstimate
from shoal.release.forecast import CALM as CALM
from shoal.release.forecast import ExpectedNoise as ExpectedNoise
from shoal.release.forecast import drowned as drowned
from shoal.release.forecast import expected_noise as expected_noise
from shoal.release.forecast import noise_by_bound as noise_by_bound
from shoal.release.forecast import noise_of as noise_of
from shoal.release.measure import Where as Where
from shoal.release.measure import attack as attack
from shoal.release.measure import check as check
from shoal.release.measure import check_runner as check_runner
from shoal.release.measure import checked as checked
from shoal.release.measure import data_of as data_of
from shoal.release.measure import evaluate as evaluate
from shoal.release.measure import evaluated as evaluated
from shoal.release.measure import in_memory_because as in_memory_because
from shoal.release.measure import risk as risk
from shoal.release.protection import Angle as Angle
from shoal.release.protection import Cluster as Cluster
from shoal.release.protection import Preparation as Preparation
from shoal.release.protection import Release as Release
from shoal.release.protection import carry_out as carry_out
from shoal.release.protection import describe_table as describe_table
from shoal.release.protection import prepare as prepare
from shoal.release.protection import public_schema as public_schema
from shoal.release.protection import published_columns as published_columns
from shoal.release.publication import CHARGING as CHARGING
from shoal.release.publication import ENGINES as ENGINES
from shoal.release.publication import Delivery as Delivery
from shoal.release.publication import Planned as Planned
from shoal.release.publication import Published as Published
from shoal.release.publication import opened as opened
from shoal.release.publication import plan as plan
from shoal.release.publication import protect as protect
from shoal.release.publication import publish as publish
from shoal.release.publication import redo as redo
from shoal.release.rehearsal import PEOPLE as PEOPLE
from shoal.release.rehearsal import Rehearsal as Rehearsal
from shoal.release.rehearsal import people_of as people_of
from shoal.release.rehearsal import rehearse as rehearse
from shoal.release.reports import report_in_parts as report_in_parts
from shoal.release.uses import Uses as Uses
from shoal.release.uses import domains_of as domains_of
from shoal.release.uses import folder_of as folder_of
from shoal.release.uses import note_use as note_use
from shoal.release.uses import noted as noted
from shoal.release.uses import settings_of as settings_of
from shoal.release.uses import shows_records as shows_records

__all__ = [
    "Cluster",
    "ResourceEstimate",
]
