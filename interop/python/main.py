"""An executor made of pyxxl, with the handlers that the peers of other
languages have too (see ../java)."""

import argparse
import asyncio
import os
import time

from pyxxl import ExecutorConfig, JobHandler, PyxxlRunner
from pyxxl.ctx import g


def flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("admin", "token", "app", "ip", "port", "logs", "journal"):
        parser.add_argument("-" + name, required=True)
    return parser.parse_args()


args = flags()
handlers = JobHandler()


def record(name: str, phase: str) -> None:
    run = g.xxl_run_data
    with open(args.journal, "a") as f:
        f.write(f"{run.logId} {run.jobId} {name} {phase} {int(time.time() * 1000)}\n")


def handler(name: str):
    """Registers a handler that leaves a trace of each begin and end in the journal."""

    def register(f):
        async def recorded():
            record(name, "start")
            phase = "broken"
            try:
                result = await f(g.xxl_run_data.executorParams or "")
                phase = "end"
                return result
            except asyncio.CancelledError:
                phase = "interrupted"
                raise
            finally:
                record(name, phase)

        handlers.register(name=name)(recorded)
        return f

    return register


@handler("echo")
async def echo(param: str) -> str:
    g.logger.info("%s", param)
    return param


@handler("quote")
async def quote(_: str) -> str:
    param = g.xxl_run_data.executorParams
    return "null" if param is None else f'"{param}"'


@handler("shard")
async def shard(_: str) -> str:
    run = g.xxl_run_data
    return f"{run.broadcastIndex}/{run.broadcastTotal}"


@handler("sleep")
@handler("sleep2")
async def sleep(param: str) -> str:
    await asyncio.sleep(int(param) / 1000)
    return "slept " + param


@handler("fail")
async def fail(param: str) -> None:
    raise RuntimeError(param.split(" ", 1)[1])


@handler("lines")
async def lines(param: str) -> str:
    n, ms = (int(word) for word in param.split(" "))
    for i in range(1, n + 1):
        g.logger.info("line %d of %d", i, n)
        await asyncio.sleep(ms / 1000)
    return ""


@handler("count")
async def count(_: str) -> str:
    return ""


PyxxlRunner(
    ExecutorConfig(
        xxl_admin_baseurl=args.admin.rstrip("/") + "/api/",
        executor_app_name=args.app,
        access_token=args.token,
        executor_listen_host=args.ip,
        executor_listen_port=int(args.port),
        executor_log_path=os.path.join(args.logs, "pyxxl.log"),
        log_local_dir=args.logs,
        http_retry_times=10,  # by default, 3, a good result becomes a failure after 15 s
        dotenv_try=False,
    ),
    handler=handlers,
).run_executor()
