from shoal.query.client import Client as Client
from shoal.query.client import RefusedError as RefusedError
from shoal.query.client import Reply as Reply
from shoal.query.facts import DatasetFacts as DatasetFacts
from shoal.query.facts import QueryTable as QueryTable
from shoal.query.facts import prepare as prepare
from shoal.query.price import charge as charge
from shoal.query.price import protocol_1_total as protocol_1_total
from shoal.query.price import total as total
from shoal.query.server.folder import TOKENS_FILE as TOKENS_FILE
from shoal.query.server.folder import DatasetSettings as DatasetSettings
from shoal.query.server.folder import write_dataset as write_dataset
from shoal.query.server.guard import Limits as Limits
from shoal.query.server.run import bound_socket as bound_socket
from shoal.query.server.run import serve as serve
from shoal.query.server.state import Config as Config
from shoal.query.server.state import HeadFile as HeadFile
from shoal.query.server.state import new_token as new_token
from shoal.query.server.state import read_tokens as read_tokens
from shoal.query.server.state import revoke_token as revoke_token
from shoal.query.spec import Answer as Answer
from shoal.query.spec import Query as Query
from shoal.query.spec import answer as answer
from shoal.query.spec import cost as cost
from shoal.query.spec import parse as parse
from shoal.query.spec import preview as preview

__all__ = [
    "Answer",
    "Client",
    "DatasetFacts",
    "Query",
    "QueryTable",
    "RefusedError",
    "Reply",
    "answer",
    "charge",
    "cost",
    "parse",
    "prepare",
    "preview",
    "protocol_1_total",
    "total",
]
