"""Engines: a release is made of tables that are never in memory as a whole, by one machine or by many.

Work is a row of stages. A stage is a pure function from batches to batches (`tasks`), and what it makes goes into
buckets from which the next one takes it. Two runners carry stages out: `local` with files of this machine, `spark` with
a cluster. What is drawn once is drawn here, on the driver; what is drawn per record comes from keyed streams, so that a
task that runs again makes the same again.
"""
