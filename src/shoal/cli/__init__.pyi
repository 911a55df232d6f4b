from shoal.cli.program import app as app
from shoal.cli.program import main as main
from shoal.cli.program import run as run
