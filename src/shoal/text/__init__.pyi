from shoal.text.sentences import EDITION as EDITION
from shoal.text.sentences import Flag as Flag
from shoal.text.sentences import Message as Message
from shoal.text.sentences import capital as capital
from shoal.text.sentences import catalogue as catalogue
from shoal.text.sentences import counted as counted
from shoal.text.sentences import filled as filled
from shoal.text.sentences import listed as listed
from shoal.text.sentences import percent as percent
from shoal.text.sentences import render as render
from shoal.text.sentences import roughly as roughly
from shoal.text.sentences import way_out as way_out

__all__ = [
    "Message",
]
