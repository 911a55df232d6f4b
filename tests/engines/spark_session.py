"""Sessions of Spark for tests, and Java for them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def need_java() -> None:
    """Skip, or fail where CI is set, on a machine without Java."""
    if shutil.which("java") is None:
        words = "Java is not installed: tests/support/install_system_packages brings it."
        pytest.fail(words) if os.environ.get("CI") else pytest.skip(words)


@contextmanager
def session(master: str, **conf: str) -> Iterator[Any]:
    """A session whose workers have this package and the modules of the tests."""
    need_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        **{key.replace("__", "."): value for key, value in conf.items()},
    }
    builder: Any = SparkSession.builder.master(master).appName("tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    try:
        yield made
    finally:
        made.stop()
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
