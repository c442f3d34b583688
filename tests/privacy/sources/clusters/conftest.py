"""A Spark session with two executors, started once; without PySpark its tests are skipped."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a short life


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    sql = pytest.importorskip("pyspark.sql", reason="needs pip install reticent[spark], and Java")
    folder = tmp_path_factory.mktemp("spark")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.executorEnv.PYTHONPATH": path,  # where the tests' own statistics are
        "spark.local.dir": str(folder),
        "spark.log.level": "OFF",
        "spark.pyspark.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder),
        "spark.task.maxFailures": "3",  # the process of a task, then its executor
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.worker.dir": str(folder / "workers"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_WORKER_DIR", str(folder / "workers"))
        builder = sql.SparkSession.builder.master("local-cluster[2,1,1024]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
