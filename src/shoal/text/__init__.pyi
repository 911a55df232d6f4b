from shoal.text.sentences import EDITION as EDITION
from shoal.text.sentences import Flag as Flag
from shoal.text.sentences import Message as Message
from shoal.text.sentences import catalogue as catalogue
from shoal.text.sentences import filled as filled
from shoal.text.sentences import render as render
from shoal.text.sentences import way_out as way_out
from shoal.text.words import capital as capital
from shoal.text.words import counted as counted
from shoal.text.words import listed as listed
from shoal.text.words import percent as percent
from shoal.text.words import roughly as roughly

__all__ = [
    "Message",
]
