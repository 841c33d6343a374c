package peer;

import com.xxl.job.core.executor.impl.XxlJobSimpleExecutor;
import java.util.List;

/** An executor without Spring, as it is from 2.3.0 on. */
final class Frameless {
    private final XxlJobSimpleExecutor executor = new XxlJobSimpleExecutor();

    void start(Settings settings, Scenarios scenarios) throws Exception {
        executor.setAdminAddresses(settings.get("admin"));
        executor.setAccessToken(settings.get("token"));
        executor.setAppname(settings.get("app"));
        executor.setIp(settings.get("ip"));
        executor.setPort(Integer.parseInt(settings.get("port")));
        executor.setLogPath(settings.get("logs"));
        executor.setLogRetentionDays(30);
        executor.setXxlJobBeanList(List.of(new Handlers(scenarios)));
        executor.start();
    }

    void stop() {
        executor.destroy();
    }
}
