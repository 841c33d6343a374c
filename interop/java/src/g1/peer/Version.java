package peer;

import com.google.gson.Gson;
import com.xxl.job.core.biz.ExecutorBiz;
import com.xxl.job.core.biz.client.ExecutorBizClient;
import com.xxl.job.core.biz.model.IdleBeatParam;
import com.xxl.job.core.biz.model.KillParam;
import com.xxl.job.core.biz.model.LogParam;
import com.xxl.job.core.biz.model.ReturnT;
import com.xxl.job.core.biz.model.TriggerParam;
import com.xxl.job.core.executor.XxlJobExecutor;
import com.xxl.job.core.handler.IJobHandler;
import com.xxl.job.core.log.XxlJobFileAppender;
import com.xxl.job.core.log.XxlJobLogger;
import com.xxl.job.core.util.ShardingUtil;
import java.nio.file.Path;

/** 2.2.0: handlers get their parameter and return their result, and there is no executor without Spring but the base class. */
final class Version implements Library {
    private final XxlJobExecutor executor = new XxlJobExecutor();

    private interface Scenario {
        void run(Run run) throws Exception;
    }

    private static void register(String name, Scenario scenario) {
        XxlJobExecutor.registJobHandler(name, new IJobHandler() {
            @Override
            public ReturnT<String> execute(String param) throws Exception {
                OldRun run = new OldRun(param);
                scenario.run(run);
                return run.result;
            }
        });
    }

    @Override
    public void start(Settings settings, Scenarios scenarios) throws Exception {
        register("echo", scenarios::echo);
        register("quote", scenarios::quote);
        register("shard", scenarios::shard);
        register("sleep", scenarios::sleep);
        register("sleep2", scenarios::sleep);
        register("fail", scenarios::fail);
        register("lines", scenarios::lines);
        register("count", scenarios::count);
        executor.setAdminAddresses(settings.get("admin"));
        executor.setAccessToken(settings.get("token"));
        executor.setAppname(settings.get("app"));
        executor.setIp(settings.get("ip"));
        executor.setPort(Integer.parseInt(settings.get("port")));
        executor.setLogPath(settings.get("logs"));
        executor.setLogRetentionDays(30);
        executor.start();
    }

    @Override
    public void stop() {
        executor.destroy();
    }

    @Override
    public String call(String address, String app, String token, String endpoint, String request) {
        Gson gson = new Gson();
        ExecutorBiz executor = new ExecutorBizClient(address, token);
        switch (endpoint) {
            case "beat":
                return gson.toJson(executor.beat());
            case "idleBeat":
                return gson.toJson(executor.idleBeat(gson.fromJson(request, IdleBeatParam.class)));
            case "run":
                return gson.toJson(executor.run(gson.fromJson(request, TriggerParam.class)));
            case "kill":
                return gson.toJson(executor.kill(gson.fromJson(request, KillParam.class)));
            case "log":
                return gson.toJson(executor.log(gson.fromJson(request, LogParam.class)));
            default:
                throw new IllegalArgumentException(endpoint);
        }
    }

    /** Of its run, a handler of this version knows no more than the name of the log file. */
    private static final class OldRun implements Run {
        private final String param;
        private ReturnT<String> result = ReturnT.SUCCESS;

        OldRun(String param) {
            this.param = param;
        }

        @Override
        public String param() {
            return param;
        }

        @Override
        public long runId() {
            String name = Path.of(XxlJobFileAppender.contextHolder.get()).getFileName().toString();
            return Long.parseLong(name.substring(0, name.indexOf('.')));
        }

        @Override
        public long jobId() {
            return 0;
        }

        @Override
        public int shardIndex() {
            return ShardingUtil.getShardingVo().getIndex();
        }

        @Override
        public int shardTotal() {
            return ShardingUtil.getShardingVo().getTotal();
        }

        @Override
        public void log(String line) {
            XxlJobLogger.log("{}", line);
        }

        @Override
        public void succeed(String text) {
            result = new ReturnT<>(ReturnT.SUCCESS_CODE, text);
        }

        @Override
        public void fail(String text) {
            result = new ReturnT<>(ReturnT.FAIL_CODE, text);
        }
    }
}
